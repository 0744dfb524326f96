// Percentiles of binned times against those of the sorted times.
// SPDX-License-Identifier: Apache-2.0
#include "meter/distribution.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

namespace mdfs::meter {
namespace {

constexpr double kWidth = 1.0 / 64;  // of a bin, as a share of the time

TEST(DistributionTest, WithoutTimesAllIsZero) {
  const Distribution none;
  EXPECT_EQ(none.count(), 0u);
  EXPECT_EQ(none.percentile_s(0.99), 0);
  EXPECT_EQ(none.most_s(), 0);
  EXPECT_TRUE(none.bins().empty());
}

TEST(DistributionTest, TimesBeyondTheBinsAreCounted) {
  Distribution times;
  for (const double seconds : {0.0, 1e-12, 1e12}) times.add(seconds);
  EXPECT_EQ(times.count(), 3u);
  EXPECT_EQ(times.least_s(), 0);
  EXPECT_EQ(times.percentile_s(1), 1e12);
}

std::vector<double> any_times() {
  return *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(
      rc::gen::map(rc::gen::inRange<std::int64_t>(1, 100'000'000'000),
                   [](std::int64_t ns) { return static_cast<double>(ns) * 1e-9; })));
}

RC_GTEST_PROP(DistributionTest, APercentileIsAtMostABinAboveTheExactOne, ()) {
  std::vector<double> times = any_times();
  Distribution binned;
  for (const double seconds : times) binned.add(seconds);
  std::sort(times.begin(), times.end());
  for (const double share : {0.0, 0.5, 0.95, 0.99, 1.0}) {
    const double wanted = std::ceil(share * static_cast<double>(times.size()));
    const double exact = times[std::max<std::size_t>(1, static_cast<std::size_t>(wanted)) - 1];
    const double found = binned.percentile_s(share);
    RC_ASSERT(found >= exact * (1 - 1e-9));
    RC_ASSERT(found <= exact * (1 + kWidth + 1e-9) + 1e-9);
  }
  RC_ASSERT(binned.percentile_s(1) == times.back());
  RC_ASSERT(binned.least_s() == times.front());
}

RC_GTEST_PROP(DistributionTest, BinsHoldAllTimesAndJoinedOnesAreThoseOfBoth, ()) {
  const std::vector<double> one = any_times();
  const std::vector<double> other = any_times();
  Distribution first, second, both;
  for (const double seconds : one) first.add(seconds);
  for (const double seconds : other) second.add(seconds);
  for (const double seconds : one) both.add(seconds);
  for (const double seconds : other) both.add(seconds);
  first.add(second);
  RC_ASSERT(first.count() == one.size() + other.size());
  std::uint64_t counted = 0;
  double end_s = 0;
  for (const Distribution::Bin& bin : first.bins()) {
    RC_ASSERT(bin.low_s >= end_s);
    RC_ASSERT(bin.high_s > bin.low_s);
    end_s = bin.high_s;
    counted += bin.count;
  }
  RC_ASSERT(counted == first.count());
  for (const double share : {0.1, 0.5, 0.9}) RC_ASSERT(first.percentile_s(share) == both.percentile_s(share));
  RC_ASSERT(first.most_s() == both.most_s());
}

}  // namespace
}  // namespace mdfs::meter
