// Loads and streams: theory where there is one, determinism, error bars, and the published figures.
// SPDX-License-Identifier: Apache-2.0
#include "sim/experiment.h"

#include <gtest/gtest.h>

#include <cmath>

#include "queueing_theory.h"
#include "sim/paper.h"
#include "sim/paper_setup.h"

namespace mdfs::sim {
namespace {

LoadOptions options() {
  return {
      .length = plane(512, 512), .windows = 4000, .warm_up = 0.1, .replications = 8, .seed = 11, .own_images = false};
}

TEST(ExperimentTest, PoissonOnAFixedServerAgreesWithPollaczekAndKhinchine) {
  const System fixed = fixed_system(0.1).value();
  for (const double load : {0.4, 0.7}) {
    const LoadResult result = poisson(fixed, options(), load / 0.1);
    const double theory = md1_sojourn_s(load / 0.1, 0.1);
    EXPECT_NEAR(result.mean.mean, theory, 2 * result.mean.half_width) << load;
    EXPECT_LT(result.mean.half_width, 0.1 * theory);
    EXPECT_NEAR(utilization_of(result.use, "server"), load, 0.03);
  }
}

TEST(ExperimentTest, AClosedLoopOfOneClientHasNoQueue) {
  const System fixed = fixed_system(0.1).value();
  LoadOptions load = options();
  load.replications = 1;
  load.windows = 100;
  const LoadResult result = closed(fixed, load, 1, 0.3);
  EXPECT_NEAR(summarize(result.delays_s).max, 0.1, 1e-9);
  EXPECT_NEAR(result.done_bytes_per_s, 512 * 512 * 3 / 0.4, 512 * 512 * 3 / 0.4 * 0.02);
  const LoadResult four = closed(fixed, load, 4, 0);
  EXPECT_NEAR(summarize(four.delays_s).p50, 0.4, 1e-9);
  EXPECT_NEAR(four.done_bytes_per_s, 512 * 512 * 3 / 0.1, 512 * 512 * 3 / 0.1 * 0.02);
}

TEST(ExperimentTest, TheSameSeedGivesTheSameFiguresAndAnotherSeedOthers) {
  const System system = preset_system("gigaview-t9000-004", 4).value();
  LoadOptions load = options();
  load.windows = 200;
  load.replications = 2;
  const LoadResult a = poisson(system, load, 2);
  EXPECT_EQ(a.delays_s, poisson(system, load, 2).delays_s);
  load.seed = 12;
  EXPECT_NE(a.delays_s, poisson(system, load, 2).delays_s);
}

TEST(ExperimentTest, ABacklogNeverBeatsTheBusiestResource) {
  const System system = preset_system("gigaview-t9000-004", 8).value();
  LoadOptions load = options();
  load.windows = 100;
  load.replications = 1;
  const LoadResult result = saturate(system, load);
  double most = 0;
  for (const ResourceUse& use : result.use) most = std::max(most, use.max_utilization());
  EXPECT_GT(most, 0.9);
  EXPECT_LE(most, 1 + 1e-9);
}

TEST(ExperimentTest, StreamsAskForFramesInTheirPattern) {
  const System system = frame_system("gigaview-t9000-000", 8, false).value();
  StreamsOptions streams;
  streams.streams = {{8, 0}, {7, 0}, {6, 0.01}};
  streams.slices = 10;
  streams.frame_extents = kFrameExtents;
  const StreamsResult result = run_streams(system, streams).value();
  EXPECT_EQ(result.delays_s[0].size(), 64U);
  EXPECT_EQ(result.delays_s[1].size(), 56U);
  EXPECT_EQ(result.delays_s[2].size(), 48U);
  EXPECT_DOUBLE_EQ(result.frames_per_s, 21);
  EXPECT_DOUBLE_EQ(result.bytes_per_s, 21 * 409600.0);
  EXPECT_EQ(result.late, 0U);
  streams.slices = 2;
  EXPECT_FALSE(run_streams(system, streams).ok());
}

TEST(ExperimentTest, AReplayOfPoissonArrivalsIsThatLoad) {
  const System system = fixed_system(0.1).value();
  Random random(1);
  const auto whole = geometry::whole(system.setup().image);
  const std::vector<TraceEntry> trace = {
      {.time_s = 0, .windows = {random_window(system.setup().image, plane(8, 8), random)}, .after = {}},
      {.time_s = 0.05, .windows = {whole}, .client = 1, .after = {}},
      {.time_s = 1, .windows = {whole}, .after = {}}};
  const LoadResult result = replay({&system, 1}, trace, 1, 1);
  ASSERT_EQ(result.delays_s.size(), 3U);
  EXPECT_NEAR(result.delays_s[0], 0.1, 1e-12);
  EXPECT_NEAR(result.delays_s[1], 0.15, 1e-12);
  EXPECT_NEAR(result.delays_s[2], 0.1, 1e-12);
}

TEST(ExperimentTest, ARequestOfATraceWaitsForTheOneThatItFollows) {
  const System system = fixed_system(0.1).value();
  const auto whole = geometry::whole(system.setup().image);
  // The second follows the first, the third nothing, the fourth the second. One server takes 0.1 s for each.
  const std::vector<TraceEntry> trace = {{.time_s = 0, .windows = {whole}, .after = {}},
                                         {.time_s = 0.02, .windows = {whole}, .after = 0},
                                         {.time_s = 0.03, .windows = {whole}, .after = {}},
                                         {.time_s = 2, .windows = {whole}, .after = 1}};
  const LoadResult result = replay({&system, 1}, trace, 1, 1);
  ASSERT_EQ(result.delays_s.size(), 4U);
  EXPECT_NEAR(result.delays_s[0], 0.1, 1e-12);
  EXPECT_NEAR(result.delays_s[1], 0.2, 1e-12);   // from 0.1, behind the third
  EXPECT_NEAR(result.delays_s[2], 0.17, 1e-12);  // from 0.03
  EXPECT_NEAR(result.delays_s[3], 0.1, 1e-12);
}

TEST(ExperimentTest, ReplicationsOfATraceDifferByTheRandomNumbersOfTheMachineOnly) {
  const auto error_bar = [](const char* machine) {
    const System system = preset_system(machine, 2).value();
    geometry::Window corner;
    corner.length = {900, 900};
    const std::vector<TraceEntry> trace(40, {.time_s = 0, .windows = {corner}, .after = {}});
    const LoadResult result = replay({&system, 1}, trace, 1, 5);
    EXPECT_EQ(result.replication_mean.size(), 5U);
    EXPECT_EQ(result.delays_s.size(), 200U);
    return result.mean.half_width;
  };
  EXPECT_EQ(error_bar("gigaview-t800"), 0);
  EXPECT_GT(error_bar("sata-disk"), 0);
}

TEST(ExperimentTest, AWindowAfterAnotherOneBeginsWhenThatOneEnds) {
  const System system = fixed_system(0.1).value();
  const std::vector<geometry::Window> windows(1, geometry::whole(system.setup().image));
  std::vector<TraceEntry> trace(3, {.time_s = 0, .windows = windows, .after = {}});
  for (std::size_t i = 1; i < trace.size(); ++i) trace[i].after = i - 1;
  for (const double delay : replay({&system, 1}, trace, 1, 1).delays_s) EXPECT_NEAR(delay, 0.1, 1e-12);
}

TEST(PaperTest, EveryPublishedFigureIsReproducedWithinItsTolerance) {
  const auto result = repeat_papers(true, 1);
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_GE(result->targets.size(), 97U);
  for (const Target& target : result->targets)
    EXPECT_TRUE(target.met()) << target.section << ": " << target.what << ": " << target.paper << " against "
                              << target.simulated << " " << target.unit;
  EXPECT_EQ(result->unreachable.size(), 8U);
}

}  // namespace
}  // namespace mdfs::sim
