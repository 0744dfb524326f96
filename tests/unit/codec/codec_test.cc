// Raw and zstd.
// SPDX-License-Identifier: Apache-2.0
#include "codec/codec.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <zstd.h>

#include <memory>
#include <random>
#include <string>
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

// ---- frames of other programs

// As zstd makes them with these parameters, of a size that it is told or not.
ByteVector foreign(const ByteVector& bytes, std::initializer_list<std::pair<ZSTD_cParameter, int>> parameters,
                   bool size_known = true) {
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  for (const auto& [parameter, value] : parameters)
    EXPECT_FALSE(ZSTD_isError(ZSTD_CCtx_setParameter(context.get(), parameter, value)));
  const std::size_t told = size_known ? ZSTD_CCtx_setPledgedSrcSize(context.get(), bytes.size()) : 0;
  EXPECT_FALSE(ZSTD_isError(told));
  ByteVector out(ZSTD_compressBound(bytes.size()) + 64);
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  for (std::size_t at = 0; at < bytes.size();) {  // in pieces, so that zstd does not learn the size by itself
    const std::size_t count = std::min<std::size_t>(bytes.size() - at, 1000);
    ZSTD_inBuffer from{bytes.data() + at, count, 0};
    while (from.pos < from.size)
      EXPECT_FALSE(ZSTD_isError(ZSTD_compressStream2(context.get(), &to, &from, ZSTD_e_continue)));
    at += count;
  }
  ZSTD_inBuffer nothing{nullptr, 0, 0};
  EXPECT_EQ(ZSTD_compressStream2(context.get(), &to, &nothing, ZSTD_e_end), 0u);
  out.resize(to.pos);
  return out;
}

ByteVector skippable() {
  return {std::byte{0x50}, std::byte{0x2a}, std::byte{0x4d}, std::byte{0x18}, std::byte{2},
          std::byte{0},    std::byte{0},    std::byte{0},    std::byte{1},    std::byte{1}};
}

ByteVector joined(const ByteVector& one, const ByteVector& other) {
  ByteVector both = one;
  both.insert(both.end(), other.begin(), other.end());
  return both;
}

// The name of the check that refuses it, or "stored" or "decoded".
std::string outcome_of(const ByteVector& frame, const ByteVector& expected) {
  ByteVector back(expected.size() + 8, std::byte{0xee});
  const auto stored = decode_foreign(Codec::kZstd, frame, MutableBytes(back).first(expected.size()));
  for (std::size_t i = expected.size(); i < back.size(); ++i) EXPECT_EQ(back[i], std::byte{0xee});
  if (!stored.ok()) {
    EXPECT_EQ(stored.error().code, Errc::kCorrupt);
    return stored.error().where;
  }
  back.resize(expected.size());
  EXPECT_EQ(back, expected);
  return *stored ? "stored" : "decoded";
}

TEST(ForeignFrame, AFrameAsTheFormatDemandsItMayBeStored) {
  const ByteVector bytes = sample(3);
  EXPECT_EQ(outcome_of(foreign(bytes, {}), bytes), "stored");
  EXPECT_EQ(outcome_of(encoded(Codec::kZstd, -7, bytes), bytes), "stored");
  EXPECT_EQ(outcome_of(foreign(bytes, {{ZSTD_c_compressionLevel, 22}}), bytes), "stored");
  EXPECT_EQ(outcome_of(foreign(bytes, {{ZSTD_c_checksumFlag, 1}}), bytes), "decoded");
  EXPECT_EQ(outcome_of(foreign(bytes, {}, false), bytes), "decoded");
  EXPECT_EQ(outcome_of(foreign(bytes, {{ZSTD_c_windowLog, 25}}, false), bytes), "decoded");
  ByteVector back(bytes.size());
  EXPECT_TRUE(*decode_foreign(Codec::kRaw, bytes, back));
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(decode_foreign(Codec::kRaw, ByteVector(bytes.size() - 1), back).error().where, "codec.raw-size");
}

TEST(ForeignFrame, WhatIsNotOneFrameOfTheExtentIsRefused) {
  const ByteVector bytes = sample(4);
  const ByteVector frame = foreign(bytes, {});
  EXPECT_EQ(outcome_of({}, bytes), "codec.frame");
  EXPECT_EQ(outcome_of(bytes, bytes), "codec.frame");
  EXPECT_EQ(outcome_of(joined(frame, frame), bytes), "codec.frame");
  EXPECT_EQ(outcome_of(joined(frame, {std::byte{0}}), bytes), "codec.frame");
  EXPECT_EQ(outcome_of(joined(frame, skippable()), bytes), "codec.frame");
  EXPECT_EQ(outcome_of(joined(skippable(), frame), bytes), "codec.frame");
  EXPECT_EQ(outcome_of(skippable(), bytes), "codec.frame");
  for (const std::size_t size : {std::size_t{3}, std::size_t{4}, std::size_t{7}, frame.size() / 2, frame.size() - 1})
    EXPECT_EQ(outcome_of({frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size)}, bytes), "codec.frame");
  for (const int more : {-1, 1}) {
    const ByteVector other(bytes.size() + static_cast<std::size_t>(more), std::byte{5});
    EXPECT_EQ(outcome_of(foreign(other, {}), bytes), "codec.content-size");
    EXPECT_EQ(outcome_of(foreign(other, {}, false), bytes), "codec.content");
  }
  ByteVector damaged = foreign(bytes, {{ZSTD_c_checksumFlag, 1}});
  damaged.back() ^= std::byte{1};
  EXPECT_EQ(outcome_of(damaged, bytes), "codec.content");
}

TEST(ForeignFrame, ABombADictionaryAndALargeWindowAreRefused) {
  const ByteVector bytes(1000, std::byte{7});
  const ByteVector large(64u << 20, std::byte{7});
  EXPECT_EQ(outcome_of(foreign(large, {}), bytes), "codec.content-size");
  EXPECT_EQ(outcome_of(foreign(large, {}, false), bytes), "codec.content");
  // Magic, descriptor (a dictionary of one byte, one segment, size of one byte), dictionary 9, size, an RLE block.
  const auto frame = [](std::initializer_list<int> rest) {
    ByteVector all = {std::byte{0x28}, std::byte{0xb5}, std::byte{0x2f}, std::byte{0xfd}};
    for (const int byte : rest) all.push_back(static_cast<std::byte>(byte));
    return all;
  };
  const ByteVector short_bytes(100, std::byte{7});
  EXPECT_EQ(outcome_of(frame({0x20, 100, 0x23, 3, 0, 7}), short_bytes), "stored");
  EXPECT_EQ(outcome_of(frame({0x21, 9, 100, 0x23, 3, 0, 7}), short_bytes), "codec.frame");
  // A window of 2^27 bytes, of a little more, of 2^31, and of more than zstd knows; no content size.
  EXPECT_EQ(outcome_of(frame({0x00, 17 << 3, 0x23, 3, 0, 7}), short_bytes), "decoded");
  EXPECT_EQ(outcome_of(frame({0x00, 17 << 3 | 1, 0x23, 3, 0, 7}), short_bytes), "codec.window");
  EXPECT_EQ(outcome_of(frame({0x00, 21 << 3, 0x23, 3, 0, 7}), short_bytes), "codec.window");
  EXPECT_EQ(outcome_of(frame({0x00, 31 << 3, 0x23, 3, 0, 7}), short_bytes), "codec.frame");
  // A content size of 2^63 that is not there.
  EXPECT_EQ(outcome_of(frame({0xe0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x23, 3, 0, 7}), short_bytes), "codec.content-size");
}

RC_GTEST_PROP(ForeignFrame, AnyDamageIsRefusedOrDecodesToTheSize, (std::uint64_t seed)) {
  std::mt19937_64 generator(seed);
  const ByteVector bytes = sample(seed);
  ByteVector frame = foreign(bytes, {{ZSTD_c_checksumFlag, static_cast<int>(seed % 2)}}, seed % 3 == 0);
  for (int i = 0; i < 3; ++i) frame[generator() % (i == 0 ? 14 : frame.size())] = static_cast<std::byte>(generator());
  ByteVector back(bytes.size() + 16, std::byte{0xee});
  (void)decode_foreign(Codec::kZstd, frame, MutableBytes(back).first(bytes.size()));
  for (std::size_t i = bytes.size(); i < back.size(); ++i) RC_ASSERT(back[i] == std::byte{0xee});
}

}  // namespace
}  // namespace mdfs::codec
