// Shapes, axes and spacings as people write them.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/shape_text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "generators.h"

namespace mdfs::geometry {
namespace {

TEST(ShapeTextTest, NumbersFromTheSlowestAxisOn) {
  EXPECT_EQ(*parse_shape("2048x3072"), (Lengths{2, {2048, 3072, 0}}));
  EXPECT_EQ(*parse_shape("7"), (Lengths{1, {7, 0, 0}}));
  EXPECT_EQ(*parse_shape("0x720x1280"), (Lengths{3, {0, 720, 1280}}));
}

TEST(ShapeTextTest, WhatIsNoShapeIsRefused) {
  for (const char* text :
       {"", "x", "5x", "x5", "5xx5", "5X5", "-5x5", "5x-5", "+5", " 5", "5 ", "5x5x5x5x5x5", "5.0", "0x"})
    EXPECT_EQ(parse_shape(text).error().code, Errc::kInvalidArgument) << text;
  EXPECT_EQ(parse_shape("5x18446744073709551616").error().code, Errc::kOverflow);
}

RC_GTEST_PROP(ShapeTextTest, EveryShapeReadsBack, ()) {
  const unsigned rank = testing::any_rank();
  Coord lengths{};
  for (unsigned axis = 0; axis < rank; ++axis) lengths[axis] = *rc::gen::arbitrary<std::uint64_t>();
  RC_ASSERT(*parse_shape(shape_text(rank, lengths)) == (Lengths{rank, lengths}));
}

TEST(AxesTest, LettersAndTheChannelAxis) {
  EXPECT_EQ(*parse_axes("zyx"), (AxesOrder{"zyx", std::nullopt}));
  EXPECT_EQ(*parse_axes("tyx"), (AxesOrder{"tyx", std::nullopt}));
  EXPECT_EQ(*parse_axes("yxc"), (AxesOrder{"yx", 2}));
  EXPECT_EQ(*parse_axes("cyx"), (AxesOrder{"cyx", std::nullopt}));  // an axis of its own
  EXPECT_EQ(*parse_axes("tczyx"), (AxesOrder{"tczyx", std::nullopt}));
  EXPECT_EQ(*parse_axes("stzyxc"), (AxesOrder{"stzyx", 5}));
  EXPECT_EQ(*parse_axes("tyxc"), (AxesOrder{"tyx", 3}));
}

TEST(AxesTest, NonsenseIsRefused) {
  for (const char* text : {"", "cc", "yxcc", "cyxc", "yy", "ustzyx", "YX", "y,x", "lyx", "y x"})
    EXPECT_FALSE(parse_axes(text).ok()) << text;
}

TEST(AxesTest, WithoutAWordTheLastShortAxisIsChannels) {
  const auto guess = [](std::vector<std::uint64_t> dimensions) { return guess_axes(dimensions); };
  EXPECT_EQ(*guess({2048, 3072, 3}), (AxesOrder{"yx", 2}));
  EXPECT_EQ(*guess({2048, 3072}), (AxesOrder{"yx", std::nullopt}));
  EXPECT_EQ(*guess({100, 3}), (AxesOrder{"yx", std::nullopt}));  // only one axis before it
  EXPECT_EQ(*guess({768, 768, 768}), (AxesOrder{"zyx", std::nullopt}));
  EXPECT_EQ(*guess({768, 768, 5}), (AxesOrder{"zyx", std::nullopt}));
  EXPECT_EQ(*guess({768, 768, 1}), (AxesOrder{"zyx", std::nullopt}));
  EXPECT_EQ(*guess({132, 720, 1280, 3}), (AxesOrder{"zyx", 3}));
  EXPECT_EQ(*guess({100}), (AxesOrder{"x", std::nullopt}));
  EXPECT_FALSE(guess({}).ok());
  EXPECT_EQ(*guess({2, 3, 4, 5}), (AxesOrder{"tzyx", std::nullopt}));
  EXPECT_EQ(*guess({2, 3, 4, 5, 3}), (AxesOrder{"tzyx", 4}));
  EXPECT_EQ(*guess({2, 3, 4, 5, 6}), (AxesOrder{"tczyx", std::nullopt}));
  EXPECT_EQ(*guess({2, 3, 4, 5, 6, 3}), (AxesOrder{"stzyx", 5}));
  EXPECT_FALSE(guess({2, 3, 4, 5, 6, 7}).ok());
}

TEST(SpacingTest, OneUnitServesAllBeforeIt) {
  const auto spacing = parse_spacing("0.5,0.2,0.2um", 3);
  ASSERT_TRUE(spacing.ok()) << spacing.error().message();
  EXPECT_EQ(*spacing, (Spacing{{0.5, 0.2, 0.2}, {"um", "um", "um"}}));
  EXPECT_EQ(*parse_spacing("0.04s,0.2,0.2um", 3), (Spacing{{0.04, 0.2, 0.2}, {"s", "um", "um"}}));
  EXPECT_EQ(*parse_spacing("1,2", 2), (Spacing{{1, 2, 0}, {}}));
}

TEST(SpacingTest, NonsenseIsRefused) {
  for (const char* text : {"", "1", "1,2,3", "0,1", "-1,1", "nan,1", "inf,1", "um,1", "1,1micrometre", "1,,"})
    EXPECT_FALSE(parse_spacing(text, 2).ok()) << text;
}

}  // namespace
}  // namespace mdfs::geometry
