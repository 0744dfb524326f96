// The grammar of windows.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/window_spec.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "generators.h"

namespace mdfs::geometry {
namespace {

Geometry image(const std::string& axes, const Coord& shape, unsigned channels = 1) {
  Geometry geometry;
  geometry.rank = static_cast<unsigned>(axes.size());
  geometry.axes = axes;
  geometry.shape = shape;
  geometry.extent = {16, 16, 16};
  geometry.channels = channels;
  return geometry;
}

const Geometry kPhotograph = image("yx", {2048, 3072, 0}, 3);
const Geometry kVolume = image("zyx", {100, 600, 700});
const Geometry kMovie = image("tyx", {132, 720, 1280}, 3);

TEST(WindowSpecTest, AxesWithStartAndLength) {
  const auto window = parse_window(kPhotograph, "y50+30,x100+40");
  ASSERT_TRUE(window.ok()) << window.error().message();
  EXPECT_EQ(window->start, (Coord{50, 100, 0}));
  EXPECT_EQ(window->length, (Coord{30, 40, 0}));
  EXPECT_EQ(window->single, (std::array<bool, kMaxRank>{}));
  EXPECT_FALSE(window->channel);
}

TEST(WindowSpecTest, TheLetterCIsAnAxisOfImagesThatHaveOne) {
  const Geometry microscope = image("tczyx", {5, 2, 30, 600, 700});
  const auto window = parse_window(microscope, "c1,t2+3,x100+40");
  ASSERT_TRUE(window.ok()) << window.error().message();
  EXPECT_EQ(window->start, (Coord{2, 1, 0, 0, 100}));
  EXPECT_EQ(window->length, (Coord{3, 1, 30, 600, 40}));
  EXPECT_TRUE(window->single[1]);
  EXPECT_FALSE(window->channel);
  EXPECT_EQ(to_spec(microscope, *window), "t2+3,c1,x100+40");
  EXPECT_FALSE(parse_window(microscope, "c2").ok());
  EXPECT_TRUE(parse_window(microscope, "c0+2").ok());
  EXPECT_FALSE(parse_window(kPhotograph, "c0+2").ok()) << "one interleaved channel or all";
}

TEST(WindowSpecTest, ASingleIndexIsDroppedAndAnAbsentAxisIsWhole) {
  const auto window = parse_window(kMovie, "t7");
  ASSERT_TRUE(window.ok());
  EXPECT_EQ(window->start, (Coord{7, 0, 0}));
  EXPECT_EQ(window->length, (Coord{1, 720, 1280}));
  EXPECT_EQ(array_shape(kMovie, *window), (std::vector<std::uint64_t>{720, 1280, 3}));
}

TEST(WindowSpecTest, FourPlainNumbersAreARectangleAsInIiif) {
  const auto window = parse_window(kPhotograph, "100,50,40,30");
  ASSERT_TRUE(window.ok());
  EXPECT_EQ(*window, *parse_window(kPhotograph, "y50+30,x100+40"));
  EXPECT_EQ(*parse_window(kMovie, "t7,100,50,40,30"), *parse_window(kMovie, "t7,y50+30,x100+40"));
}

TEST(WindowSpecTest, EqualWindowsSpelledDifferentlyAreEqual) {
  for (const char* spec : {"x100+40,y50+30", "y050+0030,x100+40", "l0,y50+30,x100+40", "100,50,40,30,l0"}) {
    const auto window = parse_window(kPhotograph, spec);
    ASSERT_TRUE(window.ok()) << spec;
    EXPECT_EQ(to_spec(kPhotograph, *window), "y50+30,x100+40") << spec;
  }
  EXPECT_EQ(*parse_window(kPhotograph, "all"), *parse_window(kPhotograph, "y0+2048"));
  EXPECT_EQ(*parse_window(kPhotograph, "l0"), whole(kPhotograph));
  EXPECT_EQ(*parse_window(kVolume, "z10,c0"), *parse_window(kVolume, "z10"));       // the only channel
  EXPECT_NE(*parse_window(kPhotograph, "y5"), *parse_window(kPhotograph, "y5+1"));  // their arrays differ in rank
}

TEST(WindowSpecTest, CanonicalSpellings) {
  EXPECT_EQ(to_spec(kPhotograph, whole(kPhotograph)), "all");
  EXPECT_EQ(to_spec(kPhotograph, *parse_window(kPhotograph, "c1")), "c1");
  EXPECT_EQ(to_spec(kMovie, *parse_window(kMovie, "c2,x5+6,t7")), "t7,x5+6,c2");
}

struct Refused {
  const char* spec;
  Errc code;
  const char* word;  // that the explanation must hold
};

class WindowSpecRefusalTest : public ::testing::TestWithParam<Refused> {};

TEST_P(WindowSpecRefusalTest, SaysWhy) {
  const auto window = parse_window(kPhotograph, GetParam().spec);
  ASSERT_FALSE(window.ok()) << GetParam().spec;
  EXPECT_EQ(window.error().code, GetParam().code) << GetParam().spec << ": " << window.error().where;
  EXPECT_NE(window.error().where.find(GetParam().word), std::string::npos) << window.error().where;
}

INSTANTIATE_TEST_SUITE_P(
    All, WindowSpecRefusalTest,
    ::testing::Values(
        Refused{"", Errc::kInvalidArgument, "empty"}, Refused{",", Errc::kInvalidArgument, "empty"},
        Refused{"y5,", Errc::kInvalidArgument, "empty"}, Refused{"z5", Errc::kInvalidArgument, "yx"},
        Refused{"y", Errc::kInvalidArgument, "missing"}, Refused{"y5+", Errc::kInvalidArgument, "missing"},
        Refused{"y-5", Errc::kOutOfRange, "clip"}, Refused{"y5+-3", Errc::kInvalidArgument, "missing"},
        Refused{"y5-3", Errc::kInvalidArgument, "START"}, Refused{"y5:8", Errc::kInvalidArgument, "START"},
        Refused{"y5+3+4", Errc::kInvalidArgument, "length"}, Refused{"y5,y6", Errc::kInvalidArgument, "twice"},
        Refused{"c1,c1", Errc::kInvalidArgument, "twice"}, Refused{"l0,l0", Errc::kInvalidArgument, "twice"},
        Refused{"y5+0", Errc::kInvalidArgument, "length 0"}, Refused{"y2048", Errc::kOutOfRange, "2048"},
        Refused{"y2000+49", Errc::kOutOfRange, "axis y"},
        Refused{"y1+18446744073709551615", Errc::kOutOfRange, "axis y"},
        Refused{"y99999999999999999999", Errc::kOverflow, "too large"}, Refused{"c3", Errc::kOutOfRange, "channel 3"},
        Refused{"l1", Errc::kOutOfRange, "level 1"}, Refused{"1,2,3", Errc::kInvalidArgument, "four"},
        Refused{"1,2,3,4,5", Errc::kInvalidArgument, "four"}, Refused{"1,2,3,4,x5", Errc::kInvalidArgument, "twice"},
        Refused{"1,2,0,4", Errc::kInvalidArgument, "length 0"}, Refused{"3071,0,2,1", Errc::kOutOfRange, "axis x"},
        Refused{"all,c1", Errc::kInvalidArgument, "axis"}, Refused{"y5 ", Errc::kInvalidArgument, "START"},
        Refused{"Y5", Errc::kInvalidArgument, "axis"}, Refused{"5x", Errc::kInvalidArgument, "plain"}));

TEST(WindowSpecTest, ASpecLongerThanANameIsRefused) {
  EXPECT_FALSE(parse_window(kPhotograph, "y" + std::string(300, '0')).ok());
}

TEST(WindowSpecTest, AnEmptyImageHasNoWindow) {
  const Geometry empty = image("tyx", {0, 720, 1280});
  EXPECT_EQ(parse_window(empty, "all").error().code, Errc::kOutOfRange);
}

TEST(WindowSpecTest, ClipPadsWhatLiesOutside) {
  const auto window = parse_level_window(kPhotograph, "y-5+30,x100+40,clip");
  ASSERT_TRUE(window.ok());
  EXPECT_EQ(window->window, *parse_window(kPhotograph, "y0+25,x100+40"));
  EXPECT_EQ(window->padding.before, (Coord{5, 0}));
  EXPECT_EQ(window->padding.after, Coord{});
  const auto behind = parse_level_window(kPhotograph, "clip,y2040+30");
  ASSERT_TRUE(behind.ok());
  EXPECT_EQ(behind->window, *parse_window(kPhotograph, "y2040+8"));
  EXPECT_EQ(behind->padding.after, (Coord{22, 0}));
  EXPECT_EQ(to_spec(kPhotograph, *behind), "y2040+30,clip");
  EXPECT_EQ(to_spec(kPhotograph, *parse_level_window(kPhotograph, "-5,-6,10,20,clip")), "y-6+20,x-5+10,clip");
}

TEST(WindowSpecTest, ClipOfAWindowInsideIsThatWindow) {
  EXPECT_TRUE(parse_level_window(kPhotograph, "y5+10,clip")->padding.is_empty());
  EXPECT_EQ(to_spec(kPhotograph, *parse_level_window(kPhotograph, "y5+10,clip")), "y5+10");
  EXPECT_EQ(*parse_window(kPhotograph, "y5+10,clip"), *parse_window(kPhotograph, "y5+10"));
  EXPECT_EQ(to_spec(kPhotograph, *parse_level_window(kPhotograph, "clip")), "all");
}

TEST(WindowSpecTest, AClippedWindowHasASampleInsideAndABound) {
  for (const char* spec : {"y-5+5,clip", "y2048+5,clip", "y-1,clip", "y2048,clip", "y0+0,clip", "y-5+30", "-5,0,10,10",
                           "clip,clip", "y-+5,clip", "y--1+5,clip", "0,0,-5,5,clip", "y5+-1,clip", "clip5", "cli",
                           "y0+4611686018427387904,clip", "y0+18446744073709551615,x0+18446744073709551615,clip",
                           "y-18446744073709551615+18446744073709551615,clip", "y-18446744073709551616+5,clip"})
    EXPECT_FALSE(parse_level_window(kPhotograph, spec).ok()) << spec;
  EXPECT_EQ(parse_level_window(kPhotograph, "y0+4611686018427387904,clip").error().code, Errc::kTooBig);
  EXPECT_EQ(parse_window(kPhotograph, "y-5+30,clip").error().code, Errc::kOutOfRange) << "a box without padding";
}

TEST(WindowSpecTest, ARectangleNeedsAxesXAndY) { EXPECT_FALSE(parse_window(image("x", {100, 0, 0}), "1,2,3,4").ok()); }

RC_GTEST_PROP(WindowSpecTest, EveryWindowReadsBackFromItsSpelling, ()) {
  const Geometry geometry = testing::any_geometry();
  const Window window = testing::any_window(geometry);
  const auto parsed = parse_window(geometry, to_spec(geometry, window));
  RC_ASSERT(parsed.ok());
  RC_ASSERT(*parsed == window);
}

RC_GTEST_PROP(WindowSpecTest, NoTextBreaksTheParser, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("tyxcl0123456789+,-: \0\xff", 23)));
  const auto window = parse_window(kMovie, text);
  if (window.ok()) RC_ASSERT(check(kMovie, *window).ok());
}

}  // namespace
}  // namespace mdfs::geometry
