// Claims about targets and the search for the cheapest machine.
// SPDX-License-Identifier: Apache-2.0
#include "sim/sizing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>

namespace mdfs::sim {
namespace {

TEST(BoundTest, ATargetIsAFigureAndABound) {
  const auto delay = parse_bound("p99 < 50 ms");
  ASSERT_TRUE(delay.ok());
  EXPECT_EQ(delay->figure, Bound::Figure::kP99);
  EXPECT_DOUBLE_EQ(delay->limit, 0.05);
  EXPECT_EQ(delay->text, "p99 < 50 ms");
  const auto rate = parse_bound("throughput>200MB/s");
  ASSERT_TRUE(rate.ok());
  EXPECT_EQ(rate->figure, Bound::Figure::kThroughput);
  EXPECT_DOUBLE_EQ(rate->limit, 200e6);
}

TEST(BoundTest, WhatCannotBeATargetIsRefusedAndQuoted) {
  for (const char* text : {"", "p99", "p99<", "p98<50ms", "p99>50ms", "throughput<1MB/s", "p99<50", "p99<50MB/s",
                           "mean<0s", "mean<-1 ms", "max<inf ms", "mean<nan s", "throughput>1e999 MB/s"}) {
    const auto bound = parse_bound(text);
    ASSERT_FALSE(bound.ok()) << text;
    EXPECT_EQ(bound.error().where.rfind("\"" + std::string(text) + "\": ", 0), 0u) << bound.error().where;
  }
}

// Replications in each of which all delays are the same: by turns `spread` above and below the mean.
LoadResult made_load(unsigned replications, double mean, double spread) {
  LoadResult load;
  for (unsigned run = 0; run < replications; ++run) {
    const double delay = run % 2 == 0 ? mean + spread : mean - spread;
    for (unsigned i = 0; i < 10; ++i) load.delays_s.push_back(delay);
    load.replication_mean.push_back(delay);
    load.replication_throughput.push_back(1e6 / delay);
  }
  return load;
}

Measured measured(const char* target, double mean, double spread, bool random = true) {
  const std::vector<Bound> targets = {*parse_bound(target)};
  return measure_targets([&](std::uint64_t, unsigned replications) { return made_load(replications, mean, spread); },
                         random, targets, 1);
}

TEST(MeasureTargetsTest, AClearAnswerTakesTheFirstReplications) {
  EXPECT_EQ(measured("mean<2s", 1, 0.01).verdict, Verdict::kMet);
  EXPECT_EQ(measured("mean<2s", 3, 0.01).verdict, Verdict::kMissed);
  EXPECT_EQ(measured("throughput>2MB/s", 1, 0.01).verdict, Verdict::kMissed);
  EXPECT_EQ(measured("throughput>0.5MB/s", 1, 0.01).verdict, Verdict::kMet);
  EXPECT_EQ(measured("mean<2s", 1, 0.01).replications, kFirstReplications);
}

TEST(MeasureTargetsTest, ALimitWithinTheErrorBarTakesMoreReplicationsAndIsThenUnsure) {
  const Measured close = measured("mean<1s", 1, 0.5);
  EXPECT_EQ(close.verdict, Verdict::kUnsure);
  EXPECT_EQ(close.replications, kMostReplications);
  const BoundResult& result = close.targets.front();
  EXPECT_LT(std::fabs(result.value.mean - 1), result.value.half_width);
  EXPECT_EQ(measured("mean<1.3s", 1, 0.5).verdict, Verdict::kMet) << "more replications decide";
}

TEST(MeasureTargetsTest, ALoadWithoutRandomnessRunsOnceAndHasNoErrorBar) {
  const Measured once = measured("mean<2s", 1, 0, false);
  EXPECT_EQ(once.replications, 1u);
  EXPECT_EQ(once.targets.front().value.half_width, 0);
  EXPECT_EQ(once.verdict, Verdict::kMet);
}

TEST(MeasureTargetsTest, OneMissedTargetIsEnoughToMiss) {
  const std::vector<Bound> targets = {*parse_bound("mean<2s"), *parse_bound("throughput>2MB/s")};
  const Measured both =
      measure_targets([](std::uint64_t, unsigned runs) { return made_load(runs, 1, 0.01); }, true, targets, 1);
  EXPECT_EQ(both.targets[0].verdict, Verdict::kMet);
  EXPECT_EQ(both.targets[1].verdict, Verdict::kMissed);
  EXPECT_EQ(both.verdict, Verdict::kMissed);
}

TEST(FindCheapestTest, CandidatesAreInOrderOfPriceThenOfDisks) {
  std::vector<Candidate> candidates = {{0, 4, 40}, {1, 2, 40}, {0, 1, 10}, {0, 2, 40}};
  sort_by_price(candidates);
  EXPECT_EQ(candidates[0].disks, 1u);
  EXPECT_EQ(candidates[1].disks, 2u);
  EXPECT_EQ(candidates[1].machine, 0u);
  EXPECT_EQ(candidates[2].machine, 1u);
  EXPECT_EQ(candidates[3].disks, 4u);
}

TEST(FindCheapestTest, TheFirstThatMeetsIsFoundWithAnyNumberOfThreads) {
  std::mt19937_64 random(7);
  for (unsigned round = 0; round < 200; ++round) {
    std::vector<Candidate> candidates;
    std::vector<Verdict> verdicts;
    const auto count = static_cast<unsigned>(1 + random() % 40);
    for (unsigned i = 0; i < count; ++i) {
      candidates.push_back({0, i + 1, static_cast<double>(i)});
      verdicts.push_back(random() % 10 == 0 ? Verdict::kMet : random() % 2 == 0 ? Verdict::kMissed : Verdict::kUnsure);
    }
    const std::size_t expected =
        static_cast<std::size_t>(std::find(verdicts.begin(), verdicts.end(), Verdict::kMet) - verdicts.begin());
    for (const unsigned threads : {1u, 3u, 8u})
      for (const bool all : {false, true}) {
        std::atomic<unsigned> told{0};
        const auto sized = find_cheapest(
            candidates,
            [&](const Candidate& one) -> Result<Measured> {
              if (one.disks % 7 == 0 && verdicts[one.disks - 1] != Verdict::kMet)
                return Error{Errc::kInvalidArgument, "does not fit"};
              Measured measured;
              measured.verdict = verdicts[one.disks - 1];
              return measured;
            },
            threads, all, [&] { ++told; });
        ASSERT_EQ(sized.size(), all ? count : std::min<std::size_t>(count, expected + 1));
        EXPECT_GE(told, sized.size());
        for (std::size_t i = 0; i < sized.size(); ++i) {
          EXPECT_EQ(sized[i].candidate.disks, i + 1);
          ASSERT_TRUE(sized[i].measured || sized[i].problem == "does not fit");
          if (sized[i].measured) {
            EXPECT_EQ(sized[i].measured->verdict, verdicts[i]);
          }
        }
      }
  }
}

}  // namespace
}  // namespace mdfs::sim
