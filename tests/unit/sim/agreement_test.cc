// Measured and simulated delays are judged by their mean, their median and their tail.
// SPDX-License-Identifier: Apache-2.0
#include "sim/agreement.h"

#include <gtest/gtest.h>

#include "model/random.h"

namespace mdfs::sim {
namespace {

ComparedDelays same_delays(std::size_t windows, std::size_t runs) {
  model::Random random(1);
  ComparedDelays delays;
  for (std::size_t i = 0; i < windows; ++i) delays.measured_s.push_back(random.uniform(0.01, 0.05));
  delays.simulated_s.assign(runs, delays.measured_s);
  return delays;
}

TEST(AgreementTest, EqualDelaysAgreeWithoutAnError) {
  const ComparedDelays delays = same_delays(30, 2);
  for (const Agreement& one : {mean_agreement(delays), agreement_at(delays, 0.5, 1), agreement_at(delays, 0.95, 1)}) {
    EXPECT_NEAR(one.ratio.mean, 1, 1e-12);
    EXPECT_NEAR(one.ratio.half_width, 0, 1e-9);
    EXPECT_EQ(one.verdict(0.01), Within::kYes);
  }
}

TEST(AgreementTest, ASlowTailIsSeenAtP95WhereTheMeanAndTheMedianHideIt) {
  ComparedDelays delays = same_delays(400, 1);
  for (std::size_t i = 0; i < delays.measured_s.size(); ++i)
    if (i % 14 == 0) delays.measured_s[i] = 0.07;
  EXPECT_EQ(mean_agreement(delays).verdict(0.2), Within::kYes);
  EXPECT_EQ(agreement_at(delays, 0.5, 1).verdict(0.2), Within::kYes);
  EXPECT_EQ(agreement_at(delays, 0.95, 1).verdict(0.2), Within::kNo);
}

TEST(AgreementTest, TheErrorBarOfAQuantileCoversItsSpreadAndTheSameSeedGivesTheSameBar) {
  model::Random random(7);
  ComparedDelays delays;
  delays.simulated_s.resize(50);
  for (int i = 0; i < 20; ++i) {
    delays.measured_s.push_back(random.exponential(0.01));
    for (std::vector<double>& run : delays.simulated_s) run.push_back(random.exponential(0.01));
  }
  const Agreement at = agreement_at(delays, 0.95, 1);
  EXPECT_LT(std::abs(at.ratio.mean - 1), at.ratio.half_width);
  EXPECT_EQ(at.ratio.half_width, agreement_at(delays, 0.95, 1).ratio.half_width);
  EXPECT_NE(at.verdict(0), Within::kNo);
}

TEST(AgreementTest, TheWorstVerdictCounts) {
  using enum Within;
  EXPECT_EQ(worst_of(std::vector{kYes, kUnsure, kYes}), kUnsure);
  EXPECT_EQ(worst_of(std::vector{kNo, kUnsure, kYes}), kNo);
  EXPECT_EQ(within_text(worst_of(std::vector{kYes, kYes})), "yes");
}

}  // namespace
}  // namespace mdfs::sim
