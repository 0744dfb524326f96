// Raw and zstd.
// SPDX-License-Identifier: Apache-2.0
#include "codec/codec.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <zstd.h>

#include <random>
#include <thread>

namespace mdfs::codec {
namespace {

int min_level() { return info(Codec::kZstd).levels.lowest; }
int max_level() { return info(Codec::kZstd).levels.highest; }

// Bytes that shrink a little: runs and noise.
ByteVector sample(std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  ByteVector bytes(generator() % 70000 + 1);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = (i / 100) % 2 == 0 ? static_cast<std::byte>(i / 700) : static_cast<std::byte>(generator());
  return bytes;
}

ByteVector encoded(Codec codec, int level, const ByteVector& bytes) {
  ByteVector out(compress_bound(codec, bytes.size()));
  out.resize(*encode(codec, level, bytes, out));
  return out;
}

RC_GTEST_PROP(CodecTest, WhatIsEncodedDecodesToTheSameBytes, (std::uint64_t seed)) {
  const ByteVector bytes = sample(seed);
  for (const Codec codec : {Codec::kRaw, Codec::kZstd}) {
    const ByteVector stored = encoded(codec, static_cast<int>(seed % 12) - 3, bytes);
    ByteVector back(bytes.size());
    RC_ASSERT(decode(codec, stored, back).ok());
    RC_ASSERT(back == bytes);
  }
}

RC_GTEST_PROP(CodecTest, DamagedFramesNeverCrashAndNeverDecodeToAnotherSize, (std::uint64_t seed)) {
  std::mt19937_64 generator(seed);
  const ByteVector bytes = sample(seed);
  ByteVector stored = encoded(Codec::kZstd, 1, bytes);
  for (int i = 0; i < 3; ++i) stored[generator() % (i == 0 ? 14 : stored.size())] = static_cast<std::byte>(generator());
  if (generator() % 4 == 0) stored.resize(generator() % (stored.size() + 9));
  ByteVector back(bytes.size() + 16, std::byte{0xee});
  (void)decode(Codec::kZstd, stored, MutableBytes(back).first(bytes.size()));
  for (std::size_t i = bytes.size(); i < back.size(); ++i) RC_ASSERT(back[i] == std::byte{0xee});
}

// An encoder keeps what it has, so a new one for each level and size.
TEST(CodecTest, AnEncoderTakesNoMoreThanItIsCountedFor) {
  for (const std::size_t bytes : {1u, 200u, 4096u, 70'000u, 1u << 20, 3u << 20, 16u << 20}) {
    const ByteVector samples(bytes, std::byte{7});
    ByteVector out(compress_bound(Codec::kZstd, bytes));
    for (int level = -5; level <= max_level(); ++level) {
      Encoder encoder;
      ASSERT_TRUE(encode(Codec::kZstd, level, samples, out, encoder).ok());
      EXPECT_LE(encoder.bytes(), encoder_bytes(Codec::kZstd, level, bytes)) << level << ", " << bytes;
    }
  }
  EXPECT_EQ(encoder_bytes(Codec::kRaw, 0, 16u << 20), 0u);
}

TEST(CodecTest, NoLevelTakesMoreThanTheBoundForTheLargestExtent) {
  const std::size_t bytes = 16u << 20;
  ByteVector samples = sample(5);
  samples.resize(bytes, std::byte{3});
  for (int level = min_level(); level <= max_level(); ++level)
    EXPECT_LE(encoder_bytes(Codec::kZstd, level, bytes), kMostEncoderBytes) << level;
  for (const int level : {19, 22}) {
    const ByteVector stored = encoded(Codec::kZstd, level, samples);
    ByteVector back(bytes);
    ASSERT_TRUE(decode(Codec::kZstd, stored, back).ok());
    EXPECT_EQ(back, samples);
  }
}

// Level 3 of zstd searches with two hash tables and takes 1.4 to 4 times as long.
TEST(CodecTest, TheDefaultLevelIsStoredAsTheFastStrategyOfZstdStoresIt) {
  const ByteVector bytes = sample(3);
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 3);
  ZSTD_CCtx_setParameter(context, ZSTD_c_strategy, ZSTD_fast);
  ZSTD_CCtx_setParameter(context, ZSTD_c_minMatch, 5);
  ByteVector expected(ZSTD_compressBound(bytes.size()));
  expected.resize(ZSTD_compress2(context, expected.data(), expected.size(), bytes.data(), bytes.size()));
  ZSTD_freeCCtx(context);
  EXPECT_EQ(encoded(Codec::kZstd, info(Codec::kZstd).default_level, bytes), expected);
}

TEST(CodecTest, OtherLevelsAreThoseOfZstd) {
  const ByteVector bytes = sample(3);
  for (const int level : {-5, 1, 2, 4, 7, 19}) {
    ByteVector expected(ZSTD_compressBound(bytes.size()));
    expected.resize(ZSTD_compress(expected.data(), expected.size(), bytes.data(), bytes.size(), level));
    EXPECT_EQ(encoded(Codec::kZstd, level, bytes), expected) << level;
  }
}

TEST(CodecTest, AFrameSaysItsContentSizeAndCarriesNoChecksum) {
  const ByteVector stored = encoded(Codec::kZstd, 3, ByteVector(100000));
  EXPECT_EQ(load_le<std::uint32_t>(stored, 0), 0xFD2FB528u);
  const auto descriptor = load_le<std::uint8_t>(stored, 4);
  EXPECT_EQ(descriptor & 3, 0);                                   // no dictionary
  EXPECT_EQ(descriptor & 4, 0);                                   // no checksum
  EXPECT_TRUE((descriptor >> 6) != 0 || (descriptor & 32) != 0);  // content size
}

TEST(CodecTest, FailuresAreReportedByTheNameOfTheCheck) {
  const ByteVector bytes = sample(1);
  ByteVector back(bytes.size());
  const ByteVector stored = encoded(Codec::kZstd, 3, bytes);
  const auto check = [](const Status& status) { return status.ok() ? std::string() : status.error().where; };
  EXPECT_EQ(check(decode(Codec::kRaw, stored, back)), "codec.raw-size");
  EXPECT_EQ(check(decode(Codec::kZstd, stored, MutableBytes(back).first(back.size() - 1))), "codec.content-size");
  ByteVector twice = stored;
  twice.insert(twice.end(), stored.begin(), stored.end());
  EXPECT_EQ(check(decode(Codec::kZstd, twice, back)), "codec.frame");
  EXPECT_EQ(check(decode(Codec::kZstd, ConstBytes(stored).first(stored.size() - 1), back)), "codec.frame");
  EXPECT_EQ(check(decode(Codec::kZstd, {}, back)), "codec.frame");
}

TEST(CodecTest, LevelsOutsideTheRangeAreRefused) {
  const ByteVector bytes(10);
  ByteVector out(compress_bound(Codec::kZstd, bytes.size()));
  EXPECT_EQ(encode(Codec::kZstd, max_level() + 1, bytes, out).error().code, Errc::kOutOfRange);
  EXPECT_EQ(encode(Codec::kZstd, min_level() - 1, bytes, out).error().code, Errc::kOutOfRange);
}

TEST(CodecTest, ThreadsDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (std::uint64_t i = 0; i < 10; ++i) {
        const ByteVector bytes = sample(t * 100 + i);
        const ByteVector stored = encoded(Codec::kZstd, 1, bytes);
        ByteVector back(bytes.size());
        EXPECT_TRUE(decode(Codec::kZstd, stored, back).ok());
        EXPECT_EQ(back, bytes);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace mdfs::codec
