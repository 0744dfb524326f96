// Images with parities: their groups, windows with a lost disk, and what a rebuild moves.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "geometry/extent_grid.h"
#include "geometry/parity_box.h"
#include "mount_disks.h"
#include "sim/experiment.h"
#include "sim/rebuild.h"

namespace mdfs::sim {
namespace {

sim::Setup setup_of(unsigned disks, unsigned width, const std::string& shape = "4096x4096") {
  sim::Setup setup = mount_disks(disks, 5);
  setup.image = make_image(shape, "128x128", true, 3).value();
  setup.width = width;
  return setup;
}
System system_of(unsigned disks, unsigned width, std::optional<unsigned> lost = std::nullopt,
                 const std::string& shape = "4096x4096") {
  sim::Setup setup = setup_of(disks, width, shape);
  setup.lost_disk = lost;
  return System::make(std::move(setup)).value();
}

TEST(ParityTest, NoTwoPiecesOfAGroupLieOnOneDiskAndEachExtentIsInOneGroup) {
  for (const auto& [disks, width] : {std::pair(3u, 2u), {5u, 2u}, {5u, 4u}, {8u, 4u}, {9u, 8u}, {16u, 8u}}) {
    const System system = system_of(disks, width);
    const ParityLayout& parities = system.parities();
    const geometry::ByteGeometry bytes = geometry::byte_geometry(system.setup().image);
    std::vector<unsigned> groups_of(parities.extents());
    for (std::size_t i = 0; i < parities.groups(); ++i) {
      const ParityLayout::Group group = parities.group(i);
      std::set<unsigned> on{group.disk};
      EXPECT_LE(group.members.size(), width);
      for (const std::uint32_t member : group.members) {
        ++groups_of[member];
        on.insert(parities.disk_of(geometry::extent_coord(bytes, member)));
      }
      ASSERT_EQ(on.size(), group.members.size() + 1);
    }
    for (const unsigned groups : groups_of) ASSERT_EQ(groups, 1U);
  }
}

TEST(ParityTest, NearlyAllExtentsShareTheirParityWithAsManyAsTheWidthSays) {
  for (const auto& [disks, width, most] :
       {std::tuple(8u, 4u, 1.26), {6u, 4u, 1.26}, {12u, 4u, 1.26}, {5u, 2u, 1.51}, {12u, 8u, 1.13}}) {
    const ParityLayout& parities = system_of(disks, width).parities();
    const auto extents = static_cast<double>(parities.extents());
    const double pieces = (extents + static_cast<double>(parities.groups())) / extents;
    EXPECT_GE(pieces, 1 + 1.0 / width);
    EXPECT_LE(pieces, most) << disks;
  }
}

// What a lost disk costs, over 300 windows and all disks.
struct Degraded {
  double busiest = 0;   // over the least that the busiest disk can have
  double slowdown = 0;  // the busiest disk over the busiest one before
  double extra = 0;     // extents read more, as a share
};
// An extent that two others are made from, or that the window wants as well, is read once.
Degraded measure(unsigned disks, unsigned width) {
  constexpr unsigned kWindows = 300;
  sim::Setup setup = setup_of(disks, width, "8192x8192");
  setup.compressed_share = 1;  // extents are read whole
  std::vector<System> systems{System::make(setup).value()};
  for (unsigned lost = 0; lost < disks; ++lost) {
    setup.lost_disk = lost;
    systems.push_back(System::make(setup).value());
  }
  const auto load_of = [&](const System& system, const geometry::Window& window) {
    double bytes = 0;
    std::set<std::pair<unsigned, std::uint64_t>> seen;
    std::vector<unsigned> load(disks);
    const auto read = [&](const geometry::PlanPart& part) {
      if (seen.insert({part.disk, part.offset_bytes}).second) ++load[part.disk];
    };
    for (const ReadUnit& unit : system.units_under({&window, 1}, 0, bytes)) {
      if (unit.others.empty()) read(unit.place);
      for (const geometry::PlanPart& part : unit.others) read(part);
    }
    return load;
  };
  Degraded sum;
  Random random(disks);
  for (unsigned i = 0; i < kWindows; ++i) {
    geometry::Coord side{2 + random.below(15), 2 + random.below(15)};
    if (side[0] > 4 * side[1] || side[1] > 4 * side[0]) side[1] = side[0];
    geometry::Window window;
    for (unsigned axis = 0; axis < 2; ++axis) {
      window.start[axis] = random.below(64 - side[axis] + 1) * 128;
      window.length[axis] = side[axis] * 128;
    }
    const std::vector<unsigned> healthy = load_of(systems[0], window);
    const double before = *std::max_element(healthy.begin(), healthy.end());
    for (unsigned lost = 0; lost < disks; ++lost) {
      const std::vector<unsigned> load = load_of(systems[lost + 1], window);
      EXPECT_EQ(load[lost], 0U);
      const double busiest = *std::max_element(load.begin(), load.end());
      const auto reads = std::accumulate(load.begin(), load.end(), 0u);
      sum.busiest += busiest / std::ceil(static_cast<double>(reads) / (disks - 1));
      sum.slowdown += busiest / before;
      sum.extra += reads / static_cast<double>(side[0] * side[1]) - 1;
    }
  }
  const double all = static_cast<double>(kWindows) * disks;
  return {sum.busiest / all, sum.slowdown / all, sum.extra / all};
}

// 4+1 on 8 disks reads 8 % more extents, and its busiest disk 1.34 times as many as before.
TEST(ParityTest, WithALostDiskTheOthersReadLittleMore) {
  for (const auto& [disks, busiest, slowdown, extra] : {std::tuple(3u, 1.00, 1.55, .05),
                                                        {4u, 1.09, 1.50, .04},
                                                        {5u, 1.16, 1.48, .03},
                                                        {6u, 1.09, 1.42, .09},
                                                        {7u, 1.14, 1.37, .08},
                                                        {8u, 1.12, 1.34, .08},
                                                        {10u, 1.17, 1.29, .06},
                                                        {12u, 1.15, 1.26, .04},
                                                        {16u, 1.22, 1.21, .04}}) {
    const Degraded found = measure(disks, geometry::usual_parity_width(disks));
    EXPECT_NEAR(found.busiest, busiest, .02) << disks;
    EXPECT_NEAR(found.slowdown, slowdown, .02) << disks;
    EXPECT_NEAR(found.extra, extra, .01) << disks;
  }
}

TEST(ParityTest, OfAnExtentOnTheLostDiskOnlyTheSubBlocksOfTheWindowAreReadFromAllOtherPieces) {
  const unsigned width = 4;
  const System whole = system_of(8, width), system = system_of(8, width, 3);
  const geometry::ByteGeometry bytes = geometry::byte_geometry(system.setup().image);
  unsigned made = 0;
  for (std::uint64_t number = 0; number < system.parities().extents(); ++number) {
    const geometry::Coord extent = geometry::extent_coord(bytes, number);
    geometry::Window window;
    for (unsigned axis = 0; axis < 2; ++axis) {
      window.start[axis] = extent[axis] * 128;
      window.length[axis] = 1;
    }
    const Split split = system.split(window, 0);
    const bool is_lost = system.layout().disk_of(extent, 0) == 3;
    ASSERT_EQ(split.requests.size(), is_lost ? width : 1);
    std::set<unsigned> disks;
    for (const Request& request : split.requests) {
      EXPECT_EQ(request.full_bytes, 16384);
      disks.insert(request.disk);
    }
    EXPECT_EQ(disks.size(), split.requests.size());
    EXPECT_FALSE(disks.contains(3));
    EXPECT_EQ(whole.split(window, 0).requests.size(), 1U);
    made += is_lost ? 1 : 0;
  }
  EXPECT_EQ(made, 1024U / 8);
}

TEST(ParityTest, ImagesOfOtherClientsAreProtectedAlike) {
  const System system = system_of(8, 4, 3);
  Random random(4);
  for (unsigned i = 0; i < 100; ++i) {
    const geometry::Window window = random_window(system.setup().image, {600, 700}, random);
    double bytes = 0;
    for (const ReadUnit& unit : system.units_under({&window, 1}, 1 + i % 20, bytes)) {
      std::set<unsigned> disks;
      for (const geometry::PlanPart& part : unit.others) disks.insert(part.disk);
      EXPECT_EQ(disks.size(), unit.others.size());
      EXPECT_FALSE(disks.contains(3));
      EXPECT_EQ(unit.others.empty(), unit.place.disk != 3);
    }
  }
}

// Two readers of one extent of the lost disk: the second finds it on its way, and waits for all pieces.
TEST(ParityTest, WhatIsMadeFromSeveralPiecesIsInTheCacheWhenTheLastHasCome) {
  sim::Setup setup = setup_of(8, 4);
  setup.lost_disk = 3;
  setup.cache_bytes = 64 << 20;
  const System system = System::make(std::move(setup)).value();
  const geometry::ByteGeometry bytes = geometry::byte_geometry(system.setup().image);
  std::uint64_t number = 0;
  while (system.layout().disk_of(geometry::extent_coord(bytes, number), 0) != 3) ++number;
  const geometry::Coord extent = geometry::extent_coord(bytes, number);
  geometry::Window window;
  window.start = {extent[0] * 128, extent[1] * 128};
  window.length = {1, 1};
  double part_bytes = 0;
  const std::vector<ReadUnit> units = system.units_under({&window, 1}, 0, part_bytes);
  ASSERT_EQ(units.size(), 1U);
  Simulation simulation(system, 1);
  // The disk of the last piece has something else to do first.
  const geometry::PlanPart& last = units.front().others.back();
  simulation.submit_requests_at(0, {system.request_of(last.disk, last.offset_bytes + (1 << 30), 20'000'000)}, 9);
  const std::size_t one = simulation.submit_at(0.001, window), other = simulation.submit_at(0.002, window, 1);
  simulation.run();
  EXPECT_GT(simulation.records()[one].done_s, 1);
  EXPECT_EQ(simulation.records()[other].done_s, simulation.records()[one].done_s);
  EXPECT_EQ(simulation.records()[other].read_bytes, 0);
}

// Lost bytes a second: (k - 1) r / ((m + 1) reb), as for copies, where m is 1.
TEST(ParityTest, ARebuildAloneComesCloseToTheFormulaAndDoesNotBeatIt) {
  for (const auto& [disks, width] : {std::pair(4u, 2u), {6u, 4u}, {8u, 4u}, {12u, 4u}}) {
    sim::Setup setup = mount_disks(disks, 0);
    setup.image = make_image("8192x8192", "128x128", true, 3).value();
    setup.width = width;
    setup.lost_disk = 1;
    const System system = System::make(std::move(setup)).value();
    const RebuildPlan plan = plan_rebuild(system).value();
    std::uint64_t read = 0, written = 0;
    for (const DiskShare& share : plan.disks) {
      read += share.read_bytes;
      written += share.written_bytes;
    }
    EXPECT_EQ(written, plan.bytes) << "all groups stay";
    EXPECT_EQ(read, width * plan.bytes);
    EXPECT_EQ(plan.disks[1].bytes(), 0U);
    const double rate = static_cast<double>(plan.bytes) / run_rebuild(system, plan, std::nullopt, 1).rebuild_s;
    const double formula = (disks - 1) * 20e6 / ((width + 1) * plan.imbalance);
    EXPECT_LE(rate, formula * 1.0001) << disks;
    EXPECT_GE(rate, formula * 0.5) << disks;
  }
}

TEST(ParityTest, WithOneDiskMoreThanTheWidthARebuildMakesNarrowerGroups) {
  for (const auto& [disks, width] : {std::pair(3u, 2u), {5u, 4u}, {9u, 8u}}) {
    const RebuildPlan plan = plan_rebuild(system_of(disks, width, 0)).value();
    std::uint64_t written = 0;
    for (const DiskShare& share : plan.disks) written += share.written_bytes;
    EXPECT_GT(written, plan.bytes) << disks;
  }
}

TEST(ParityTest, WindowsTakeLongerWithALostDiskAndLongerStillBesideTheRebuild) {
  const System whole = system_of(8, 4), system = system_of(8, 4, 2);
  const RebuildPlan plan = plan_rebuild(system).value();
  for (const std::uint64_t side : {64u, 512u}) {
    RebuildLoad load;
    load.length = {side, side};
    load.windows = 300;
    LoadOptions options;
    options.length = load.length;
    options.windows = 1000;
    const double healthy = closed(whole, options, 1, 0).mean.mean, lost = closed(system, options, 1, 0).mean.mean;
    EXPECT_GT(lost, healthy) << side;
    EXPECT_GT(summarize(run_rebuild(system, plan, load, 1).delays_s).mean, lost) << side;
  }
}

TEST(ParityTest, AHealthyImageIsReadAsOneWithoutParity) {
  const System parity = system_of(8, 4), none = system_of(8, 1);
  Random random(3);
  for (unsigned i = 0; i < 50; ++i) {
    const geometry::Window window = random_window(none.setup().image, {500, 900}, random);
    const Split one = parity.split(window, 0), other = none.split(window, 0);
    ASSERT_EQ(one.requests.size(), other.requests.size());
    for (std::size_t r = 0; r < one.requests.size(); ++r) {
      EXPECT_EQ(one.requests[r].disk, other.requests[r].disk);
      EXPECT_EQ(one.requests[r].address_bytes, other.requests[r].address_bytes);
    }
  }
}

TEST(ParityTest, WhatAMachineCannotHaveIsRefused) {
  EXPECT_FALSE(System::make(setup_of(4, 4)).ok());  // too few disks
  EXPECT_FALSE(System::make(setup_of(8, 3)).ok());
  EXPECT_FALSE(System::make(setup_of(65, 4)).ok());
  EXPECT_TRUE(System::make(setup_of(64, 8)).ok());
  sim::Setup both = setup_of(8, 4);
  both.copies = 2;
  EXPECT_FALSE(System::make(both).ok());
  sim::Setup lost = setup_of(8, 4);
  lost.lost_disk = 8;
  EXPECT_FALSE(System::make(lost).ok());
  EXPECT_FALSE(System::make(setup_of(8, 4, "1048576x1048576")).ok());  // too many extents
  sim::Setup striped = default_setup(model::find_machine("raid5").value()).value();
  striped.width = 4;
  EXPECT_FALSE(System::make(striped).ok());
}

}  // namespace
}  // namespace mdfs::sim
