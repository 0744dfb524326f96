// Formats of pixels, and conversions.
// SPDX-License-Identifier: Apache-2.0
#include "pixels.h"

#include <gtest/gtest.h>
#include <mdfs/ondisk.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace mdfs::gst {
namespace {

std::string format(std::uint8_t type, std::uint32_t channels, bool has_display_range = false) {
  const auto found = choose_format(type, channels, has_display_range);
  return found ? found->name : "none";
}

TEST(PixelsTest, SamplesOf8And16BitsAreExact) {
  EXPECT_EQ(format(MDFS_TYPE_U8, 1), "GRAY8");
  EXPECT_EQ(format(MDFS_TYPE_U8, 3), "RGB");
  EXPECT_EQ(format(MDFS_TYPE_U8, 4), "RGBA");
  EXPECT_EQ(format(MDFS_TYPE_U16, 1, true), "GRAY16_LE");
  EXPECT_EQ(format(MDFS_TYPE_U16, 3), "RGBA64_LE");
  EXPECT_EQ(format(MDFS_TYPE_U16, 4), "RGBA64_LE");
  EXPECT_EQ(choose_format(MDFS_TYPE_U16, 3, false)->conversion, Conversion::kAddAlpha);
  EXPECT_EQ(choose_format(MDFS_TYPE_U16, 4, true)->conversion, Conversion::kNone);
  EXPECT_EQ(choose_format(MDFS_TYPE_U8, 1, true)->conversion, Conversion::kNone);
}

TEST(PixelsTest, OtherTypesNeedADisplayRange) {
  for (std::uint8_t type = MDFS_TYPE_U32; type <= MDFS_TYPE_F64; ++type) {
    EXPECT_EQ(format(type, 1), "none");
    EXPECT_EQ(format(type, 1, true), "GRAY8");
    EXPECT_EQ(format(type, 3, true), "RGB");
    EXPECT_EQ(format(type, 4, true), "RGBA");
    EXPECT_EQ(choose_format(type, 3, true)->conversion, Conversion::kDisplay);
  }
}

TEST(PixelsTest, OtherNumbersOfChannelsAndTypesHaveNoFormat) {
  for (const std::uint32_t channels : {0u, 2u, 5u, 65535u}) EXPECT_EQ(format(MDFS_TYPE_U8, channels, true), "none");
  EXPECT_EQ(format(0, 1, true), "none");
  EXPECT_EQ(format(MDFS_TYPE_F64 + 1, 1, true), "none");
  EXPECT_EQ(type_name(MDFS_TYPE_F16), "f16");
  EXPECT_EQ(type_name(99), "?");
}

TEST(PixelsTest, ADisplayRangeIsTwoFiniteNumbersThatDiffer) {
  const auto range = parse_display_range("-1.5,2e3");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->black, -1.5);
  EXPECT_EQ(range->white, 2000);
  for (const char* text : {"", "1", "1,", ",1", "1,1", "1,2,3", "nan,1", "1,inf", "a,b", "1 ,2"})
    EXPECT_FALSE(parse_display_range(text)) << text;
}

TEST(PixelsTest, AnAlphaIsAddedBehindEachPixel) {
  const std::vector<std::uint16_t> from = {1, 2, 3, 40000, 50000, 60000};
  std::vector<std::uint16_t> to(8);
  add_alpha(std::as_bytes(std::span(from)), std::as_writable_bytes(std::span(to)));
  EXPECT_EQ(to, (std::vector<std::uint16_t>{1, 2, 3, 65535, 40000, 50000, 60000, 65535}));
}

template <typename T>
std::vector<int> shown(std::uint8_t type, const geometry::DisplayRange& range, const std::vector<T>& samples) {
  std::vector<std::byte> to(samples.size());
  show_in_8_bits(type, range, std::as_bytes(std::span(samples)), to);
  std::vector<int> values;
  for (const std::byte value : to) values.push_back(static_cast<int>(value));
  return values;
}

TEST(PixelsTest, SamplesAreShownInProportion) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(shown<float>(MDFS_TYPE_F32, {0, 1}, {0, 1, 0.5F, -3, 7, nan, inf, -inf}),
            (std::vector<int>{0, 255, 128, 0, 255, 0, 255, 0}));
  EXPECT_EQ(shown<std::int16_t>(MDFS_TYPE_I16, {-100, 100}, {-100, 100, 0, -32768, 32767}),
            (std::vector<int>{0, 255, 128, 0, 255}));
  EXPECT_EQ(shown<std::uint32_t>(MDFS_TYPE_U32, {255, 0}, {0, 255, 55, 4'000'000'000}),
            (std::vector<int>{255, 0, 200, 0}));
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(shown<double>(MDFS_TYPE_F64, {-most, most}, {-most, 0, most}), (std::vector<int>{0, 128, 255}));
  // 0, 1, -2, the smallest above 0, 65504, infinity and no number.
  EXPECT_EQ(shown<std::uint16_t>(MDFS_TYPE_F16, {-2, 2}, {0, 0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00, 0x7e00}),
            (std::vector<int>{128, 191, 0, 128, 255, 255, 0}));
}

}  // namespace
}  // namespace mdfs::gst
