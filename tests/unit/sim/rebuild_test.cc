// Rebuilds: what they read and write, their pace by the formula and beside windows.
// SPDX-License-Identifier: Apache-2.0
#include "sim/rebuild.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "mount_disks.h"
#include "sim/experiment.h"

namespace mdfs::sim {
namespace {

constexpr double kRate = 20e6;  // of a disk

// Disks that read or write kRate and nothing else, whose requests take `request_ms` more.
System degraded(unsigned disks, std::optional<unsigned> lost, double request_ms = 0,
                const std::string& shape = "4096x4096") {
  Setup setup = mount_disks(disks, request_ms);
  setup.image = make_image(shape, "128x128", true, 3).value();
  setup.copies = 2;
  setup.lost_disk = lost;
  return System::make(std::move(setup)).value();
}

RebuildLoad load_of(std::uint64_t side) {
  RebuildLoad load;
  load.length = {side, side};
  load.windows = 300;
  return load;
}

TEST(RebuildTest, EachExtentOfTheLostDiskIsReadOnceAndWrittenOnceElsewhere) {
  for (unsigned disks = 3; disks <= 12; ++disks)
    for (unsigned lost = 0; lost < disks; ++lost) {
      const System system = degraded(disks, lost, 0, "2048x2048");
      const RebuildPlan plan = plan_rebuild(system).value();
      std::uint64_t read = 0, written = 0, extents = 0;
      for (std::uint64_t y = 0; y < 16; ++y)
        for (std::uint64_t x = 0; x < 16; ++x) {
          const geometry::Coord extent{y, x};
          extents += system.layout().disk_of(extent, 0) == lost ? 1 : 0;
          extents += system.second_copies().disk_of(extent, 0) == lost ? 1 : 0;
        }
      double requested = 0;
      for (const RebuildPiece& piece : plan.pieces) {
        for (const Request& request : piece.reads) {
          EXPECT_NE(request.disk, lost);
          requested += request.full_bytes;
        }
        for (const Request& request : piece.writes) EXPECT_NE(request.disk, lost);
      }
      for (const DiskShare& share : plan.disks) {
        read += share.read_bytes;
        written += share.written_bytes;
      }
      EXPECT_EQ(plan.extents, extents);
      EXPECT_EQ(plan.bytes, extents * system.step_bytes());
      EXPECT_EQ(read, plan.bytes);
      EXPECT_EQ(written, plan.bytes);
      EXPECT_DOUBLE_EQ(requested, static_cast<double>(plan.bytes));
      EXPECT_EQ(plan.disks[lost].bytes(), 0U);
    }
}

TEST(RebuildTest, TheWorkIsSpreadEvenlyOverTheOtherDisks) {
  for (unsigned disks = 4; disks <= 16; ++disks)
    EXPECT_LT(plan_rebuild(degraded(disks, 1, 0, "16384x16384")).value().imbalance, 1.07) << disks;
}

TEST(RebuildTest, PiecesAreAsLargeAsThoseOfTheMount) {
  const System system = degraded(8, 3);
  const RebuildPlan plan = plan_rebuild(system).value();
  std::size_t steps = 0;
  for (const RebuildPiece& piece : plan.pieces) {
    double bytes = 0;
    for (const Request& request : piece.reads) {
      EXPECT_LE(request.full_bytes, 256 << 10);
      bytes += request.full_bytes;
    }
    EXPECT_LT(bytes, (4 << 20) + static_cast<double>(system.step_bytes()));
    steps += piece.begins_step ? 1 : 0;
  }
  EXPECT_TRUE(plan.pieces.front().begins_step);
  EXPECT_LE(steps, plan.extents / 64 + 1);
  EXPECT_GT(steps, 1U);
}

// Lost bytes a second: (k - 1) r / (2 reb), for disks on which reads and writes share the rate r. A piece ends with its
// last disk, so the simulated pace is a little lower.
TEST(RebuildTest, AloneItComesCloseToTheFormulaAndDoesNotBeatIt) {
  for (const unsigned disks : {3u, 4u, 6u, 8u, 12u}) {
    const System system = degraded(disks, 0);
    const RebuildPlan plan = plan_rebuild(system).value();
    const RebuildResult result = run_rebuild(system, plan, std::nullopt, 1);
    const double rate = static_cast<double>(plan.bytes) / result.rebuild_s;
    const double formula = (disks - 1) * kRate / (2 * plan.imbalance);
    EXPECT_LE(rate, formula * 1.0001) << disks;
    EXPECT_GE(rate, formula * 0.7) << disks;
    EXPECT_EQ(result.passes, 1U);
    EXPECT_TRUE(result.delays_s.empty());
  }
}

TEST(RebuildTest, WindowsTakeLongerWithALostDiskAndLongerStillBesideTheRebuild) {
  const System whole = degraded(8, std::nullopt, 5), system = degraded(8, 2, 5);
  const RebuildPlan plan = plan_rebuild(system).value();
  for (const std::uint64_t side : {64u, 512u}) {
    const RebuildLoad load = load_of(side);
    LoadOptions options;
    options.length = load.length;
    options.windows = 1000;
    const double healthy = closed(whole, options, 1, 0).mean.mean, lost = closed(system, options, 1, 0).mean.mean;
    const RebuildResult result = run_rebuild(system, plan, load, 1);
    const double beside = summarize(result.delays_s).mean;
    EXPECT_GE(result.delays_s.size(), 300U);
    EXPECT_GE(lost, healthy * 0.999) << side;
    EXPECT_GT(beside, lost) << side;
    EXPECT_GT(result.rebuild_s, run_rebuild(system, plan, std::nullopt, 1).rebuild_s) << side;
  }
}

TEST(RebuildTest, BeforeEachPieceItWaitsForReadersButNoLongerThanTheMount) {
  const System system = degraded(8, 2);
  const RebuildPlan plan = plan_rebuild(system).value();
  // One window after another: there is always a reader.
  const RebuildResult result = run_rebuild(system, plan, load_of(64), 1);
  std::size_t waits = plan.pieces.size();
  for (const RebuildPiece& piece : plan.pieces) waits += piece.begins_step ? 1 : 0;
  const double alone = run_rebuild(system, plan, std::nullopt, 1).rebuild_s;
  EXPECT_GE(result.rebuild_s, alone + 0.019 * static_cast<double>(waits));
  // A reader that pauses does not hold it up.
  RebuildLoad pausing = load_of(64);
  pausing.think_s = 0.002;
  EXPECT_LT(run_rebuild(system, plan, pausing, 1).rebuild_s, result.rebuild_s * 0.95);
  // Few windows: it hardly waits.
  RebuildLoad rare = load_of(64);
  rare.windows_per_s = 1;
  rare.windows = 5;
  EXPECT_LT(run_rebuild(system, plan, rare, 1).rebuild_s, alone * 1.05);
}

TEST(RebuildTest, TheSameSeedGivesTheSameTimesAndAnotherSeedOthers) {
  const System system = degraded(6, 5, 2);
  const RebuildPlan plan = plan_rebuild(system).value();
  RebuildLoad load = load_of(256);
  load.windows_per_s = 20;
  const RebuildResult one = run_rebuild(system, plan, load, 7), other = run_rebuild(system, plan, load, 8);
  EXPECT_EQ(one.delays_s, run_rebuild(system, plan, load, 7).delays_s);
  EXPECT_NE(one.delays_s, other.delays_s);
}

TEST(RebuildTest, WhatCannotBeRebuiltIsRefused) {
  EXPECT_FALSE(plan_rebuild(degraded(8, std::nullopt)).ok());
  EXPECT_FALSE(plan_rebuild(degraded(2, 0)).ok());
}

TEST(RebuildTest, ALostDiskWithoutExtentsNeedsNoTime) {
  const System system = degraded(8, 7, 0, "128x128");
  const RebuildPlan plan = plan_rebuild(system).value();
  EXPECT_EQ(plan.bytes, 0U);
  EXPECT_EQ(run_rebuild(system, plan, load_of(64), 1).rebuild_s, 0);
}

}  // namespace
}  // namespace mdfs::sim
