// Times of frames, and the frames of times.
// SPDX-License-Identifier: Apache-2.0
#include "frame_times.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace mdfs::gst {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

const std::vector<FrameRate> kRates = {{24, 1},        {25, 1}, {30000, 1001},  {1, 600},
                                       {1000000, 333}, {7, 3},  {1000000000, 1}};

std::vector<std::int64_t> frames_of(const FrameOrder& order) {
  std::vector<std::int64_t> frames;
  for (FrameOrder left = order; !left.is_empty(); left.first += left.step) frames.push_back(left.first);
  return frames;
}

TEST(FrameTimesTest, AFrameBeginsAtItsTimeRoundedDown) {
  EXPECT_EQ(begin_of(0, {24, 1}), 0u);
  EXPECT_EQ(begin_of(1, {24, 1}), 41'666'666u);
  EXPECT_EQ(begin_of(24, {24, 1}), kSecond);
  EXPECT_EQ(begin_of(30000, {30000, 1001}), 1001 * kSecond);
  EXPECT_EQ(begin_of(std::uint64_t{1} << 62, {24, 1}), kEndOfTime);
}

RC_GTEST_PROP(FrameTimesTest, AFrameIsShownFromItsBeginUntilTheNextBegins, ()) {
  const FrameRate rate = *rc::gen::elementOf(kRates);
  const auto frame = *rc::gen::inRange<std::uint64_t>(0, 10'000'000);
  RC_ASSERT(frame_at(begin_of(frame, rate), rate) == frame);
  RC_ASSERT(frame_at(begin_of(frame + 1, rate) - 1, rate) == frame);
}

TEST(FrameTimesTest, TheSpacingOfTimeIsARate) {
  EXPECT_EQ(rate_of_spacing(0.04, "s"), (FrameRate{25, 1}));
  EXPECT_EQ(rate_of_spacing(40, "ms"), (FrameRate{25, 1}));
  EXPECT_EQ(rate_of_spacing(500, "us"), (FrameRate{2000, 1}));
  EXPECT_EQ(rate_of_spacing(500, "\u00b5s"), (FrameRate{2000, 1}));
  EXPECT_EQ(rate_of_spacing(5, "min"), (FrameRate{1, 300}));
  EXPECT_EQ(rate_of_spacing(1001.0 / 30000, "s"), (FrameRate{30000, 1001}));
  EXPECT_EQ(rate_of_spacing(1001.0 / 24000, "s"), (FrameRate{24000, 1001}));
  EXPECT_EQ(rate_of_spacing(1.0 / 3, "s"), (FrameRate{3, 1}));
  EXPECT_EQ(rate_of_spacing(0.3, "s"), (FrameRate{10, 3}));
}

TEST(FrameTimesTest, ASpacingThatIsNoTimeOrNoRateIsNone) {
  EXPECT_EQ(rate_of_spacing(0.2, "um"), std::nullopt);
  EXPECT_EQ(rate_of_spacing(0.2, ""), std::nullopt);
  EXPECT_EQ(rate_of_spacing(0, "s"), std::nullopt);
  EXPECT_EQ(rate_of_spacing(-1, "s"), std::nullopt);
  EXPECT_EQ(rate_of_spacing(std::numeric_limits<double>::quiet_NaN(), "s"), std::nullopt);
  EXPECT_EQ(rate_of_spacing(std::numeric_limits<double>::infinity(), "s"), std::nullopt);
  EXPECT_EQ(rate_of_spacing(0.1, "ns"), std::nullopt);
  EXPECT_EQ(rate_of_spacing(1e300, "h"), std::nullopt);
  EXPECT_EQ(rate_of_spacing(1e-320, "s"), std::nullopt);
}

RC_GTEST_PROP(FrameTimesTest, EachSpacingThatIsARateIsNearIt, ()) {
  const double spacing = *rc::gen::inRange(1, 1'000'000'000) / 1e6;
  const auto rate = rate_of_spacing(spacing, "s");
  RC_ASSERT(rate.has_value());
  RC_ASSERT(is_possible(*rate));
  const double found = static_cast<double>(rate->denominator) / rate->numerator;
  RC_ASSERT(std::abs(found - spacing) <= 2e-9 * spacing);
}

TEST(FrameTimesTest, ImpossibleRatesAreKnown) {
  EXPECT_TRUE(is_possible({1, INT32_MAX}));
  EXPECT_TRUE(is_possible({1'000'000'000, 1}));
  EXPECT_FALSE(is_possible({1'000'000'001, 1}));
  EXPECT_FALSE(is_possible({0, 1}));
  EXPECT_FALSE(is_possible({-24, 1}));
  EXPECT_FALSE(is_possible({24, 0}));
}

TEST(FrameOrderTest, ForwardsFromTheFrameOfTheStartToTheOneBeforeTheStop) {
  const FrameRate rate{10, 1};
  EXPECT_EQ(frames_of(order_of(0, kSecond, false, 5, rate)), (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(frames_of(order_of(kSecond / 10, kSecond, false, 5, rate)), (std::vector<std::int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(frames_of(order_of(kSecond / 10 + 1, kSecond * 3 / 10, false, 5, rate)), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(frames_of(order_of(0, kSecond * 3 / 10 + 1, false, 5, rate)), (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST(FrameOrderTest, BackwardsFromTheFrameBeforeTheStopToTheOneOfTheStart) {
  const FrameRate rate{10, 1};
  EXPECT_EQ(frames_of(order_of(0, kSecond, true, 5, rate)), (std::vector<std::int64_t>{4, 3, 2, 1, 0}));
  EXPECT_EQ(frames_of(order_of(kSecond / 10, kSecond * 3 / 10, true, 5, rate)), (std::vector<std::int64_t>{2, 1}));
}

TEST(FrameOrderTest, NothingIsLeftAtTheEnd) {
  const FrameRate rate{10, 1};
  for (const bool backwards : {false, true}) {
    EXPECT_TRUE(order_of(kSecond / 2, kSecond, backwards, 5, rate).is_empty());
    EXPECT_TRUE(order_of(kSecond * 100, kEndOfTime, backwards, 5, rate).is_empty());
    EXPECT_TRUE(order_of(0, 0, backwards, 5, rate).is_empty());
    EXPECT_TRUE(order_of(kSecond / 5, kSecond / 10, backwards, 5, rate).is_empty());
  }
}

RC_GTEST_PROP(FrameOrderTest, BothDirectionsShowTheSameFrames, ()) {
  const FrameRate rate = *rc::gen::elementOf(kRates);
  const auto frames = *rc::gen::inRange<std::uint64_t>(1, 50);
  const std::uint64_t end = begin_of(frames, rate);
  const auto start = *rc::gen::inRange<std::uint64_t>(0, end + 2), stop = *rc::gen::inRange<std::uint64_t>(0, end + 2);
  auto there = frames_of(order_of(start, stop, false, frames, rate));
  const auto back = frames_of(order_of(start, stop, true, frames, rate));
  std::vector<std::int64_t> expected;
  for (std::uint64_t frame = 0; frame < frames; ++frame)
    if (start < std::min(stop, end) && begin_of(frame, rate) < stop && begin_of(frame + 1, rate) > start)
      expected.push_back(static_cast<std::int64_t>(frame));
  RC_ASSERT(there == expected);
  std::reverse(there.begin(), there.end());
  RC_ASSERT(there == back);
}

}  // namespace
}  // namespace mdfs::gst
