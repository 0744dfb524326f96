// The pace of disks.
// SPDX-License-Identifier: Apache-2.0
#include "device/read_pace.h"

#include <gtest/gtest.h>

namespace mdfs::device {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::uint64_t kBytes = 64u << 10;

class ReadPaceTest : public testing::Test {
 protected:
  // One after another, each of so many milliseconds, with as long a pause behind it.
  void read(unsigned count, std::int64_t ms) {
    for (unsigned i = 0; i < count; ++i) {
      pace_.begin(now_);
      now_ += ms * kMs;
      pace_.end(now_, kBytes, true);
      now_ += ms * kMs;
    }
  }
  double ms_per_read() const {
    return pace_.ns_per_byte(now_).value_or(0) * static_cast<double>(kBytes + kRequestBytes) / kMs;
  }

  ReadPace pace_;
  std::int64_t now_ = 5'000'000'000;
};

TEST_F(ReadPaceTest, TheTimeWithoutRequestsDoesNotCount) {
  read(100, 10);
  EXPECT_NEAR(ms_per_read(), 10, 0.01);
}

TEST_F(ReadPaceTest, RequestsAtOnceShareTheirTime) {
  for (unsigned i = 0; i < 50; ++i) {
    for (unsigned at_once = 0; at_once < 4; ++at_once) pace_.begin(now_);
    for (unsigned at_once = 0; at_once < 4; ++at_once) pace_.end(now_ += 5 * kMs, kBytes, true);
  }
  EXPECT_NEAR(ms_per_read(), 5, 0.01);
}

TEST_F(ReadPaceTest, AFewReadsOrAShortTimeSayNothing) {
  read(ReadPace::kLeastRequests - 1, 100);
  EXPECT_FALSE(pace_.ns_per_byte(now_));
  read(1, 100);
  EXPECT_TRUE(pace_.ns_per_byte(now_));
  pace_.reset();
  read(100, 1);
  EXPECT_FALSE(pace_.ns_per_byte(now_));
  read(150, 1);
  EXPECT_TRUE(pace_.ns_per_byte(now_));
}

TEST_F(ReadPaceTest, ADiskThatBecomesSlowIsSeenWithinSeconds) {
  read(10'000, 1);
  read(40, 100);
  EXPECT_GT(ms_per_read(), 50);
}

TEST_F(ReadPaceTest, AReadThatHasWaitedForLongCountsBeforeItEnds) {
  read(300, 1);
  pace_.begin(now_);
  now_ += 3'000 * kMs;
  EXPECT_GT(ms_per_read(), 9);
}

TEST_F(ReadPaceTest, WhatWasReadLongAgoIsForgotten) {
  read(100, 10);
  now_ += ReadPace::kMemoryNs;
  EXPECT_FALSE(pace_.ns_per_byte(now_));
  read(1, 500);
  EXPECT_FALSE(pace_.ns_per_byte(now_)) << "one new read does not bring the old ones back";
}

TEST_F(ReadPaceTest, FailedReadsTakeTimeAndReadNothing) {
  read(20, 10);
  pace_.begin(now_);
  pace_.end(now_ += 200 * kMs, kBytes, false);
  EXPECT_NEAR(ms_per_read(), 20, 0.01);
}

TEST(SlownessTest, IsTheTimeOverTheMedianOfTheOthersFromThreeTimesOn) {
  using Paces = std::vector<std::optional<double>>;
  EXPECT_EQ(slowness(Paces{1, 1, 1, 5}), (std::vector<double>{1, 1, 1, 5}));
  EXPECT_EQ(slowness(Paces{1, 2, 2.9, 1}), (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(slowness(Paces{1, 1e9, 1}), (std::vector<double>{1, kMostSlowness, 1}));
  EXPECT_EQ(slowness(Paces{8, 1, std::nullopt}), (std::vector<double>{1, 1, 1})) << "of two nobody knows which is slow";
  EXPECT_EQ(slowness(Paces{std::nullopt, 1, 1, 8, std::nullopt}), (std::vector<double>{1, 1, 1, 8, 1}));
  EXPECT_EQ(slowness(Paces{8, 8, 1, 1}), (std::vector<double>{8, 8, 1, 1})) << "disks of two kinds";
  EXPECT_EQ(slowness(Paces{}), std::vector<double>{});
}

}  // namespace
}  // namespace mdfs::device
