// The ramp: limits that break, and the clients that are measured next.
// SPDX-License-Identifier: Apache-2.0
#include "meter/ramp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace mdfs::meter {
namespace {

using testing::HasSubstr;

// A second in which transfers of a kilobyte took so long each.
Step step_of(unsigned clients, unsigned transfers, double total_s = 0.01) {
  Step step{.clients = clients, .measured_s = 1};
  for (unsigned i = 0; i < transfers; ++i)
    step.tally.add(
        TimedTransfer{.sequential = true, .blocks = 2, .bytes = 1000, .transfer_s = total_s / 2, .total_s = total_s});
  return step;
}

TEST(RampTest, AStepWithoutLimitsHolds) { EXPECT_EQ(broken_limit({}, step_of(1, 3), nullptr), ""); }

TEST(RampTest, LateTransfersBreakTheirShare) {
  Step step = step_of(4, 100);
  step.tally.due = 100;
  const Limits none{.late = 0}, some{.late = 0.02};
  EXPECT_EQ(broken_limit(none, step, nullptr), "");
  step.tally.late = 2;
  EXPECT_EQ(broken_limit(none, step, nullptr), "late: 2 of 100 transfers, above 0 %");
  EXPECT_EQ(broken_limit(some, step, nullptr), "");
}

TEST(RampTest, ThePercentileIsThatOfAllKinds) {
  Step step = step_of(1, 98);
  step.tally.add(TimedTransfer{.write = true, .blocks = 1, .bytes = 1, .transfer_s = 1, .total_s = 1});
  EXPECT_THAT(broken_limit({.p99_s = 0.5}, step, nullptr), HasSubstr("p99: 1000 ms, above 500 ms"));
  EXPECT_EQ(broken_limit({.p99_s = 1}, step, nullptr), "");
}

TEST(RampTest, TheTotalRateMustGrow) {
  const Limits limits{.gain = 0.05};
  const Step four = step_of(4, 100), eight = step_of(8, 104), better = step_of(8, 106);
  EXPECT_EQ(broken_limit(limits, four, nullptr), "");
  EXPECT_EQ(broken_limit(limits, eight, &four), "gain: +4.0 % over 4 clients, below 5 %");
  EXPECT_EQ(broken_limit(limits, better, &four), "");
}

TEST(RampTest, RepeatedStepsAddUp) {
  Step step;
  step.add(step_of(2, 10));
  step.add(step_of(2, 30));
  EXPECT_EQ(step.clients, 2u);
  EXPECT_EQ(step.tally.count(), 40u);
  EXPECT_DOUBLE_EQ(step.rate(), 20'000) << "40 kB in 2 s";
  EXPECT_NEAR(step.tally.transfers.sequential_read.rate(), 200'000, 1e-6) << "by data transfer time";
}

// The clients that are measured, where up to `limit` hold.
std::vector<Tried> ramp(unsigned limit, unsigned most) {
  std::vector<Tried> tried;
  while (const auto clients = next_clients(tried, most)) tried.push_back({*clients, *clients <= limit});
  return tried;
}

RC_GTEST_PROP(RampTest, TheRampFindsTheMostClientsInFewSteps, ()) {
  const unsigned most = *rc::gen::inRange(1U, 257U);
  const unsigned limit = *rc::gen::inRange(0U, 300U);
  const std::vector<Tried> tried = ramp(limit, most);
  RC_ASSERT(most_held(tried) == std::min(limit, most));
  RC_ASSERT(tried.size() <= 17U);
  for (const Tried& one : tried) RC_ASSERT((one.clients >= 1 && one.clients <= most));
}

RC_GTEST_PROP(RampTest, TheRampEndsWhateverHolds, ()) {
  const unsigned most = *rc::gen::inRange(1U, 257U);
  std::vector<Tried> tried;
  while (const auto clients = next_clients(tried, most)) {
    RC_ASSERT(std::none_of(tried.begin(), tried.end(), [&](const Tried& one) { return one.clients == *clients; }));
    tried.push_back({*clients, *rc::gen::arbitrary<bool>()});
  }
  RC_ASSERT(tried.size() <= 17U);
}

TEST(RampTest, ClientsDoubleAndThenTheGapHalves) {
  std::vector<unsigned> clients;
  for (const Tried& one : ramp(11, 64)) clients.push_back(one.clients);
  EXPECT_EQ(clients, (std::vector<unsigned>{1, 2, 4, 8, 16, 12, 10, 11}));
}

}  // namespace
}  // namespace mdfs::meter
