// Summaries, intervals and fits against values worked out by hand or taken from tables.
// SPDX-License-Identifier: Apache-2.0
#include "sim/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "queueing_theory.h"
#include "sim/system.h"

namespace mdfs::sim {
namespace {

TEST(StatisticsTest, PercentilesAreNearestRanks) {
  std::vector<double> samples(100);
  std::iota(samples.rbegin(), samples.rend(), 1.0);
  const Summary summary = summarize(samples);
  EXPECT_EQ(summary.count, 100U);
  EXPECT_EQ(summary.mean, 50.5);
  EXPECT_EQ(summary.p50, 50);
  EXPECT_EQ(summary.p95, 95);
  EXPECT_EQ(summary.p99, 99);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.max, 100);
}

TEST(StatisticsTest, StudentsTAgreesWithTables) {
  EXPECT_NEAR(student_t(1), 12.706, 1e-3);
  EXPECT_NEAR(student_t(9), 2.262, 1e-3);
  EXPECT_NEAR(student_t(13), 2.1604, 1e-4);
  EXPECT_NEAR(student_t(30), 2.0423, 1e-4);
  EXPECT_NEAR(student_t(1000), 1.9623, 1e-4);
}

TEST(StatisticsTest, NineteenOfTwentyIntervalsHoldTheMean) {
  Random random(5);
  int held = 0;
  constexpr int kRuns = 2000;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> samples(20);
    for (double& sample : samples) sample = random.uniform(0, 1) + random.uniform(0, 1);
    const Interval interval = confidence_interval(samples);
    held += std::fabs(interval.mean - 1) <= interval.half_width ? 1 : 0;
  }
  EXPECT_NEAR(held / static_cast<double>(kRuns), 0.95, 0.02);
}

TEST(StatisticsTest, OneValueHasNoErrorBar) {
  const double one = 3;
  EXPECT_TRUE(std::isinf(confidence_interval({&one, 1}).half_width));
}

TEST(StatisticsTest, BatchesLeaveTheRemainderOutAtTheFront) {
  const std::vector<double> samples = {100, 1, 3, 5, 7};
  EXPECT_EQ(batch_means(samples, 2), (std::vector<double>{2, 6}));
  EXPECT_TRUE(batch_means(samples, 6).empty());
}

TEST(StatisticsTest, HistogramsCountEverySample) {
  const std::vector<double> samples = {0, 1, 2, 3, 4};
  const Histogram result = histogram(samples, 4);
  EXPECT_EQ(result.counts, (std::vector<std::size_t>{1, 1, 1, 2}));
  EXPECT_EQ(result.width, 1);
}

TEST(StatisticsTest, ALineIsFoundExactlyAndWeightsCount) {
  const std::vector<double> x = {1, 2, 3, 4};
  const std::vector<double> y = {5, 7, 9, 11};
  const Line line = fit_line(x, y);
  EXPECT_NEAR(line.a, 3, 1e-12);
  EXPECT_NEAR(line.b, 2, 1e-12);
  EXPECT_NEAR(line.r_squared, 1, 1e-12);
  const std::vector<double> bent = {5, 7, 9, 100};
  const std::vector<double> weights = {1, 1, 1, 0};
  EXPECT_NEAR(fit_line(x, bent, weights).b, 2, 1e-12);
  EXPECT_NEAR(fit_line(x, bent, weights).residuals[3], 89, 1e-9);
}

TEST(StatisticsTest, ErlangCWithOneServerIsMM1) {
  EXPECT_NEAR(mmc_sojourn_s(50, 0.01, 1), 0.01 / (1 - 0.5), 1e-12);
  // Four servers at 75 %: Erlang's C is 0.5094, so the mean wait is C * s / (c - a).
  EXPECT_NEAR(mmc_sojourn_s(3, 1, 4) - 1, 0.509434, 1e-5);
}

}  // namespace
}  // namespace mdfs::sim
