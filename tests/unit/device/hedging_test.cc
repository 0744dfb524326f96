// When a request is late, how often it may be made again, and which disks are late.
// SPDX-License-Identifier: Apache-2.0
#include "device/hedging.h"

#include <gtest/gtest.h>

namespace mdfs::device {
namespace {

TEST(HedgingTest, ARequestIsLateAfterSixTimesItsUsualTimeAndNotBefore60Ms) {
  EXPECT_EQ(late_after_ns(1 << 20, 1.0), kLeastLateNs);                  // 6 ms of a fast disk
  EXPECT_EQ(late_after_ns(1 << 20, 50.0), 6 * (50ll << 20));             // 315 ms behind a queue
  EXPECT_EQ(late_after_ns(2 * 262144.0, std::nullopt), 6 * 18'000'000);  // of an unknown one
  EXPECT_GT(late_after_ns(1e300, 1e300), 0);
}

TEST(HedgingTest, OneRequestInTwentyIsMadeAgainAndSomeMoreAfterARest) {
  HedgeBudget budget;
  std::int64_t spent = 0;
  while (budget.spend()) ++spent;
  EXPECT_EQ(spent, HedgeBudget::kMostAtOnce);
  for (unsigned i = 0; i < 1000; ++i) {
    budget.earn(1);
    if (budget.spend()) ++spent;
  }
  EXPECT_EQ(spent, HedgeBudget::kMostAtOnce + 1000 / HedgeBudget::kRequestsForEach);
  budget.earn(SIZE_MAX);
  for (spent = 0; budget.spend();) ++spent;
  EXPECT_EQ(spent, HedgeBudget::kMostAtOnce);
}

TEST(HedgingTest, TheUsualPaceOfASlowDiskIsThatOfTheOthers) {
  const std::vector<std::optional<double>> seen = {10, 12, 4000, std::nullopt, 11}, alone = {50, std::nullopt};
  const auto usual = usual_paces(seen);
  EXPECT_EQ(usual[0], 10);
  EXPECT_EQ(usual[1], 12);
  EXPECT_NEAR(*usual[2], 11, 1);
  EXPECT_EQ(usual[3], std::nullopt);
  EXPECT_EQ(usual_paces(alone), alone);
}

TEST(HedgingTest, ADiskIsLateUntilAllItsLateRequestsHaveEnded) {
  LateDisks late;
  EXPECT_EQ(late.mask(), 0u);
  late.begin(0);
  late.begin(63);
  late.begin(63);
  EXPECT_EQ(late.mask(), 1u | 1ull << 63);
  late.end(63);
  EXPECT_EQ(late.mask(), 1u | 1ull << 63);
  late.end(63);
  late.end(0);
  EXPECT_EQ(late.mask(), 0u);
}

}  // namespace
}  // namespace mdfs::device
