// The plan of defragmentation, on layouts made by hand.
// SPDX-License-Identifier: Apache-2.0
#include "layout/defrag_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "geometry/placement.h"

namespace mdfs::layout {
namespace {

using geometry::Coord;

constexpr std::uint64_t kExtentBytes = 64u << 10;
constexpr std::uint64_t kUnitBlocks = kExtentBytes / 4096;
constexpr unsigned kDisks = 4;

struct Grid {
  unsigned rank;
  Coord grid;
};

class DefragPlanTest : public testing::TestWithParam<Grid> {
 protected:
  DefragPlanTest() : groups_(GetParam().rank, GetParam().grid, kExtentBytes) {
    const auto [rank, grid] = GetParam();
    image_.rank = rank;
    image_.grid = grid;
    image_.disks = kDisks;
    image_.groups = &groups_;
    std::vector<std::uint16_t> disks;
    for (std::uint16_t disk = 0; disk < kDisks; ++disk) disks.push_back(disk);
    image_.placement_disk = [rank = rank, placement = geometry::default_placement(rank, disks)](const Coord& extent) {
      return geometry::disk_of(placement, rank, 0, extent);
    };
    for (std::uint64_t a = 0; a < grid[0]; ++a)
      for (std::uint64_t b = 0; b < (rank > 1 ? grid[1] : 1); ++b)
        for (std::uint64_t c = 0; c < (rank > 2 ? grid[2] : 1); ++c) places_.push_back({{a, b, c}, 0, 0, kExtentBytes});
    places_ = fresh_places(image_, places_);
  }

  // As moves of whole groups leave it: each group behind everything that there is.
  void apply(const std::vector<GroupMove>& moves) {
    std::uint64_t next = 1'000'000'000;
    for (const GroupMove& move : moves) {
      next += 1;
      for (const Coord& extent : move.extents) {
        const auto place =
            std::find_if(places_.begin(), places_.end(), [&](const ExtentPlace& one) { return one.index == extent; });
        ASSERT_NE(place, places_.end());
        place->disk = move.disk;
        place->block = next;
        place->pieces = 1;
        next += kUnitBlocks;
      }
    }
  }
  double factor() const { return fragmentation_of(image_, places_, 4096).factor(); }
  // As a fresh copy on these disks lies; what a change of disks has left behind when the placement is another one now.
  void lay_on(const std::vector<std::uint16_t>& disks) {
    ImageLayout before = image_;
    before.disks = static_cast<unsigned>(disks.size());
    before.placement_disk = [rank = image_.rank, placement = geometry::default_placement(image_.rank, disks)](
                                const Coord& extent) { return geometry::disk_of(placement, rank, 0, extent); };
    places_ = fresh_places(before, places_);
  }

  Groups groups_;
  ImageLayout image_;
  RoomOf room_ = [](unsigned) { return std::uint64_t{1} << 30; };
  std::vector<ExtentPlace> places_;
};

TEST_P(DefragPlanTest, AFreshCopyIsLeftAlone) { EXPECT_TRUE(plan_defrag(image_, places_, room_).empty()); }

TEST_P(DefragPlanTest, WhatLiesAllOverTheDisksIsLaidAnewAsAWhole) {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> order(places_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  for (std::size_t i = 0; i < order.size(); ++i) places_[i].block = order[i] * kUnitBlocks * 2;
  const std::vector<GroupMove> moves = plan_defrag(image_, places_, room_);
  apply(moves);
  EXPECT_LT(factor(), 1.02);
}

TEST_P(DefragPlanTest, GroupsAreWholeAndNamedOnce) {
  std::mt19937_64 random(2);
  for (ExtentPlace& place : places_) place.block = random() % 100'000 * kUnitBlocks;
  std::set<Coord> seen;
  for (const GroupMove& move : plan_defrag(image_, places_, room_)) {
    EXPECT_EQ(move.bytes, move.extents.size() * kExtentBytes);
    for (const Coord& extent : move.extents) {
      EXPECT_TRUE(seen.insert(extent).second);
      EXPECT_EQ(image_.placement_disk(extent), move.disk);
      EXPECT_EQ(groups_.run_of(extent, kDisks), groups_.run_of(move.extents.front(), kDisks));
    }
    for (std::size_t i = 1; i < move.extents.size(); ++i)
      EXPECT_LT(groups_.order_of(move.extents[i - 1]), groups_.order_of(move.extents[i]));
  }
}

TEST_P(DefragPlanTest, WhatIsOnAnotherDiskGoesHomeWithItsGroup) {
  if (places_.size() < 100) return;
  for (std::size_t i = 0; i < places_.size(); i += 3) {
    places_[i].disk = (places_[i].disk + 1) % kDisks;
    places_[i].block = 500'000 + i * 100;
  }
  apply(plan_defrag(image_, places_, room_));
  EXPECT_EQ(fragmentation_of(image_, places_).misplaced, 0u);
}

TEST_P(DefragPlanTest, WhatLiesWellByAnotherPlacementGoesHome) {
  for (const std::vector<std::uint16_t>& disks :
       {std::vector<std::uint16_t>{0}, std::vector<std::uint16_t>{1, 2, 3}, std::vector<std::uint16_t>{2, 3}}) {
    lay_on(disks);
    apply(plan_defrag(image_, places_, room_));
    EXPECT_EQ(fragmentation_of(image_, places_).misplaced, 0u) << disks.size();
    EXPECT_LE(factor(), 1.02) << disks.size();
  }
}

TEST_P(DefragPlanTest, WhatOnlyNewDisksHaveTakenLeavesTheRestToGoHome) {
  std::vector<ExtentPlace> fresh = places_;
  lay_on({0, 1, 2});
  std::uint64_t next = 7'000'000;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (fresh[i].disk != 3) continue;
    places_[i].disk = 3;
    places_[i].block = next;
    next += kUnitBlocks;
  }
  apply(plan_defrag(image_, places_, room_));
  EXPECT_EQ(fragmentation_of(image_, places_).misplaced, 0u);
  EXPECT_LE(factor(), 1.02);
}

TEST_P(DefragPlanTest, WhatHasNoRoomAtHomeStaysWhereItIs) {
  std::uint64_t next = 7'000'000;
  for (ExtentPlace& place : places_) {
    if (place.disk != 3) continue;
    place.disk = 0;
    place.block = next;
    next += kUnitBlocks;
  }
  const std::vector<ExtentPlace> before = places_;
  const double was = factor();
  room_ = [](unsigned disk) { return std::uint64_t{disk == 3 ? kUnitBlocks : 1u << 30}; };
  apply(plan_defrag(image_, places_, room_));
  EXPECT_LE(factor(), was + 1e-9);
  for (std::size_t i = 0; i < places_.size(); ++i) EXPECT_TRUE(places_[i].disk != 3 || before[i].disk == 3) << i;
}

TEST_P(DefragPlanTest, NoPlanMakesALayoutWorse) {
  std::mt19937_64 random(3);
  for (unsigned round = 0; round < 20; ++round) {
    places_ = fresh_places(image_, places_);
    // Ranges are written anew elsewhere, some more than once.
    for (unsigned range = 0; range < 1 + round; ++range) {
      std::uint64_t at = 10'000'000 + random() % 1000 * 1'000'000;
      const std::size_t first = random() % places_.size();
      for (std::size_t i = first; i < std::min(first + 1 + random() % 12, places_.size()); ++i) {
        places_[i].block = at;
        at += kUnitBlocks;
      }
    }
    const double before = factor();
    apply(plan_defrag(image_, places_, room_));
    EXPECT_LE(factor(), before + 1e-9);
    EXPECT_LT(factor(), std::max(1.1, 1 + (before - 1) * 0.5));
  }
}

INSTANTIATE_TEST_SUITE_P(Grids, DefragPlanTest,
                         testing::Values(Grid{1, {300, 0, 0}}, Grid{2, {40, 37, 0}}, Grid{2, {3, 90, 0}},
                                         Grid{2, {2, 2, 0}}, Grid{3, {9, 10, 11}}));

TEST(GroupsOrderTest, EachPlaceInTheOrderIsOneExtentOrPadding) {
  for (const Grid& shape : {Grid{1, {9, 0, 0}}, Grid{2, {7, 25, 0}}, Grid{3, {3, 5, 40}}}) {
    const Groups groups(shape.rank, shape.grid, 256u << 10);
    std::map<std::uint64_t, Coord> known;
    for (std::uint64_t a = 0; a < shape.grid[0]; ++a)
      for (std::uint64_t b = 0; b < (shape.rank > 1 ? shape.grid[1] : 1); ++b)
        for (std::uint64_t c = 0; c < (shape.rank > 2 ? shape.grid[2] : 1); ++c)
          known[groups.order_of({a, b, c})] = {a, b, c};
    const std::uint64_t end = groups.order_end(shape.grid[0]);
    EXPECT_LE(known.rbegin()->first, end - 1);
    for (std::uint64_t order = 0; order < end; ++order) {
      const auto extent = groups.extent_at(order, shape.grid[0]);
      const auto found = known.find(order);
      ASSERT_EQ(extent.has_value(), found != known.end()) << order;
      if (!extent) continue;
      EXPECT_EQ(*extent, found->second);
    }
  }
}

}  // namespace
}  // namespace mdfs::layout
