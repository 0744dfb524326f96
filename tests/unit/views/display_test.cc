// Ranges of display.
// SPDX-License-Identifier: Apache-2.0
#include "views/display.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "small_image.h"
#include "views/view_file.h"

namespace mdfs::views {
namespace {

using geometry::automatic_display;
using geometry::DisplayRange;
using geometry::ElementType;
using geometry::parse_display;
using geometry::to_8_bits;
using geometry::to_text;

template <typename T>
ConstBytes bytes_of(const std::vector<T>& samples) {
  return std::as_bytes(std::span(samples));
}

template <typename T>
std::vector<int> shown(ElementType type, const DisplayRange& range, const std::vector<T>& samples) {
  ByteVector into(samples.size());
  to_8_bits(type, range, bytes_of(samples), into);
  std::vector<int> result;
  for (const std::byte byte : into) result.push_back(std::to_integer<int>(byte));
  return result;
}

TEST(Display, ARangeIsTwoFiniteNumbersThatDiffer) {
  EXPECT_EQ(*parse_display("0,4095"), (DisplayRange{0, 4095}));
  EXPECT_EQ(*parse_display("1e3,-2.5"), (DisplayRange{1000, -2.5}));
  for (const char* text :
       {"", ",", "1", "1,", ",1", "1,1", "1,2,3", "1,nan", "inf,1", "1, 2", "a,b", "1,1e999", "0x1,2"})
    EXPECT_EQ(parse_display(text).error().code, Errc::kInvalidArgument) << text;
}

RC_GTEST_PROP(Display, TheTextOfARangeIsReadBack, (double black, double white)) {
  RC_PRE(std::isfinite(black) && std::isfinite(white) && black != white);
  RC_ASSERT(*parse_display(to_text({black, white})) == (DisplayRange{black, white}));
}

TEST(Display, SamplesBeyondTheRangeAreBlackOrWhite) {
  EXPECT_EQ(shown<std::uint16_t>(ElementType::kU16, {100, 355}, {0, 100, 101, 228, 355, 356, 65535}),
            (std::vector<int>{0, 0, 1, 128, 255, 255, 255}));
  EXPECT_EQ(shown<std::int16_t>(ElementType::kI16, {10, -245}, {10, -245, 11, -246, 9}),
            (std::vector<int>{0, 255, 0, 255, 1}));
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(shown<float>(ElementType::kF32, {-1, 1}, {nan, inf, -inf, 0, 2}), (std::vector<int>{0, 255, 0, 128, 255}));
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(shown<double>(ElementType::kF64, {-most, most}, {-most, 0, most}), (std::vector<int>{0, 128, 255}));
}

TEST(Display, TheAutomaticRangeLeavesOutOneOfAThousandAtBothEnds) {
  std::vector<std::uint16_t> samples;
  for (unsigned i = 0; i < 2000; ++i) samples.push_back(static_cast<std::uint16_t>(i));
  EXPECT_EQ(*automatic_display(ElementType::kU16, bytes_of(samples)), (DisplayRange{2, 1997}));
  EXPECT_EQ(*automatic_display(ElementType::kU8, bytes_of<std::uint8_t>({7, 7})), (DisplayRange{7, 8}));
  const double large = 1e300;
  const auto same = automatic_display(ElementType::kF64, bytes_of<double>({large, NAN, INFINITY}));
  EXPECT_EQ(same->black, large);
  EXPECT_GT(same->white, large);
  EXPECT_EQ(automatic_display(ElementType::kF32, bytes_of<float>({NAN})).error().code, Errc::kNoData);
}

TEST(Display, ARangeLetsPicturesOf8BitsShowEveryType) {
  const geometry::Geometry deep = make("yx", {4, 4}, 1, ElementType::kU16),
                           real = make("yx", {4, 4}, 3, ElementType::kF32);
  EXPECT_FALSE(parse_window_name(deep, "all.jpg").ok());
  EXPECT_FALSE(parse_window_name(real, "all.png").ok());
  const DisplayRange range{0, 1};
  for (const char* name : {"all.jpg", "all.png"}) {
    EXPECT_TRUE(parse_window_name({deep, range}, name).ok());
    EXPECT_TRUE(parse_window_name({real, range}, name).ok());
  }
  EXPECT_FALSE(parse_window_name({deep, range}, "all.ppm").ok());
  EXPECT_FALSE(parse_window_name({make("yx", {4, 4}, 2, ElementType::kU16), range}, "all.jpg").ok())
      << "no two channels";
  EXPECT_EQ(raster_of({deep, range}, *parse_window_name(deep, "all.png"))->sample_bytes, 2u) << "exact";
  EXPECT_EQ(raster_of({real, range}, *parse_window_name({real, range}, "all.png"))->sample_bytes, 1u);
}

}  // namespace
}  // namespace mdfs::views
