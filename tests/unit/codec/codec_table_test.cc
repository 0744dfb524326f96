// What holds for every row of the table of codecs.
// SPDX-License-Identifier: Apache-2.0
#include "codec/codec_table.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "codec/codec.h"

namespace mdfs::codec {
namespace {

class EveryCodecTest : public ::testing::TestWithParam<Codec> {
 protected:
  const CodecInfo& row() const { return info(GetParam()); }
  std::vector<int> levels() const {
    if (!row().has_levels) return {0};
    return {row().levels.lowest, -1, row().default_level, row().offered.highest, row().levels.highest};
  }
  // Runs, noise and a ramp.
  static ByteVector samples(std::size_t bytes) {
    std::mt19937_64 generator(bytes);
    ByteVector made(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      made[i] = static_cast<std::byte>(i / 1000 % 3 == 0 ? 5 : i / 1000 % 3 == 1 ? generator() : i);
    return made;
  }
};

TEST_P(EveryCodecTest, WhatIsEncodedAtAnyLevelDecodesToTheSameBytes) {
  Encoder encoder;
  for (const std::size_t bytes : {1u, 4095u, 300'000u})
    for (const int level : levels()) {
      const ByteVector decoded = samples(bytes);
      ByteVector stored(compress_bound(GetParam(), bytes));
      const auto used = encode(GetParam(), level, decoded, stored, encoder);
      ASSERT_TRUE(used.ok()) << level << ": " << used.error().where;
      stored.resize(*used);
      ByteVector back(bytes);
      ASSERT_TRUE(decode(GetParam(), stored, back).ok()) << level;
      EXPECT_EQ(back, decoded) << level;
      EXPECT_LE(encoder.bytes(), kMostEncoderBytes);
    }
}

TEST_P(EveryCodecTest, AFreshEncoderTakesNoMoreThanItIsCountedFor) {
  for (const int level : levels()) {
    const ByteVector decoded = samples(1u << 20);
    ByteVector stored(compress_bound(GetParam(), decoded.size()));
    Encoder encoder;
    ASSERT_TRUE(encode(GetParam(), level, decoded, stored, encoder).ok());
    EXPECT_LE(encoder.bytes(), encoder_bytes(GetParam(), level, decoded.size())) << level;
    EXPECT_LE(encoder_bytes(GetParam(), level, geometry::kMaxExtentBytes), kMostEncoderBytes) << level;
  }
}

TEST_P(EveryCodecTest, DamagedBytesNeverCrashAndNothingIsWrittenBehindTheBuffer) {
  const ByteVector decoded = samples(5000);
  ByteVector whole(compress_bound(GetParam(), decoded.size()));
  whole.resize(*encode(GetParam(), row().default_level, decoded, whole));
  std::mt19937_64 generator(7);
  for (int round = 0; round < 300; ++round) {
    ByteVector stored = whole;
    for (int i = 0; i < 3; ++i) stored[generator() % stored.size()] = static_cast<std::byte>(generator());
    if (round % 3 == 0) stored.resize(generator() % (stored.size() + 9));
    ByteVector back(decoded.size() + 16, std::byte{0xee});
    (void)decode(GetParam(), stored, MutableBytes(back).first(decoded.size()));
    for (std::size_t i = decoded.size(); i < back.size(); ++i) ASSERT_EQ(back[i], std::byte{0xee});
  }
}

TEST_P(EveryCodecTest, StoredBytesOfAnotherSizeAreFoundDamaged) {
  const ByteVector decoded = samples(5000);
  ByteVector stored(compress_bound(GetParam(), decoded.size()));
  stored.resize(*encode(GetParam(), row().default_level, decoded, stored));
  for (const std::size_t bytes : {4999u, 5001u}) {
    ByteVector back(bytes);
    const Status status = decode(GetParam(), stored, back);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Errc::kCorrupt);
    EXPECT_TRUE(status.error().where.starts_with("codec.")) << status.error().where;
  }
}

TEST_P(EveryCodecTest, ItsNameAndLevelsAreReadBackFromTheTextsThatShowThem) {
  EXPECT_EQ(parse_name(row().name).value(), GetParam());
  EXPECT_EQ(parse_choice(row().name)->codec, GetParam());
  EXPECT_EQ(parse_choice(row().name)->level, row().default_level);
  const std::string shown = choice_text(GetParam(), row().default_level);
  EXPECT_EQ(parse_choice(shown)->codec, GetParam());
  EXPECT_EQ(parse_choice(shown)->level, row().default_level);
  EXPECT_NE(choices_text().find(row().name), std::string::npos);
  EXPECT_NE(names_text().find(row().name), std::string::npos);
  EXPECT_NE(("," + choice_list() + ",").find("," + std::string(row().name) + ","), std::string::npos);
  EXPECT_FALSE(parse_choice(std::string(row().name) + ":").ok());
  EXPECT_FALSE(parse_choice(std::string(row().name) + ":x").ok());
  EXPECT_FALSE(parse_choice(std::string(row().name) + ":999").ok());
}

TEST_P(EveryCodecTest, LevelsLieInTheRangesThatImagesAndTheDiskAllow) {
  if (!row().has_levels) {
    EXPECT_TRUE(check_level(GetParam(), 99).ok());
    return;
  }
  EXPECT_TRUE(row().levels.contain(row().offered.lowest) && row().levels.contain(row().offered.highest));
  EXPECT_TRUE(row().offered.contain(row().default_level));
  EXPECT_GE(row().levels.lowest, geometry::kMinCodecLevel);
  EXPECT_LE(row().levels.highest, geometry::kMaxCodecLevel);
  for (const int level : {row().levels.lowest - 1, row().levels.highest + 1}) {
    EXPECT_EQ(check_level(GetParam(), level).error().code, Errc::kOutOfRange);
    ByteVector stored(compress_bound(GetParam(), 9));
    EXPECT_EQ(encode(GetParam(), level, ByteVector(9), stored).error().code, Errc::kOutOfRange);
  }
}

std::vector<Codec> ids() {
  std::vector<Codec> all;
  for (const CodecInfo& row : codec_table()) all.push_back(row.id);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Table, EveryCodecTest, ::testing::ValuesIn(ids()),
                         [](const auto& one) { return std::string(codec::info(one.param).name); });

TEST(CodecTableTest, NamesDifferAndWhatIsInNoRowIsRefusedByName) {
  std::set<std::string_view> names;
  for (const CodecInfo& row : codec_table()) EXPECT_TRUE(names.insert(row.name).second) << row.name;
  EXPECT_EQ(parse_name("lzma").error().where, "codec 'lzma' is unknown: must be raw or zstd");
  EXPECT_EQ(parse_choice("lzma").error().code, Errc::kUsage);
  EXPECT_EQ(choice_text(static_cast<Codec>(200), 3), "codec 200");
}

TEST(CodecTableTest, OneEncoderServesAllCodecsInTurn) {
  Encoder encoder;
  const ByteVector decoded(70'000, std::byte{9});
  for (int round = 0; round < 3; ++round)
    for (const CodecInfo& row : codec_table()) {
      ByteVector stored(compress_bound(row.id, decoded.size()));
      const auto used = encode(row.id, row.default_level, decoded, stored, encoder);
      ASSERT_TRUE(used.ok());
      ByteVector back(decoded.size());
      EXPECT_TRUE(decode(row.id, ConstBytes(stored).first(*used), back).ok());
      EXPECT_EQ(back, decoded);
    }
}

}  // namespace
}  // namespace mdfs::codec
