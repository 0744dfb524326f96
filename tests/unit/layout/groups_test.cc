// Groups of extents, by enumeration of small grids.
// SPDX-License-Identifier: Apache-2.0
#include "layout/groups.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

namespace mdfs::layout {
namespace {

using geometry::Coord;

constexpr std::uint64_t kLargeExtent = 256u << 10;  // about ten columns of three rows make a group

std::vector<Coord> all_extents(unsigned rank, const Coord& grid) {
  std::vector<Coord> extents;
  for (std::uint64_t a = 0; a < grid[0]; ++a)
    for (std::uint64_t b = 0; b < (rank > 1 ? grid[1] : 1); ++b)
      for (std::uint64_t c = 0; c < (rank > 2 ? grid[2] : 1); ++c) extents.push_back({a, b, c});
  return extents;
}

struct Grid {
  unsigned rank;
  Coord grid;
};

class GroupsTest : public testing::TestWithParam<Grid> {
 protected:
  const Groups groups_{GetParam().rank, GetParam().grid, kLargeExtent};
  const std::vector<Coord> extents_ = all_extents(GetParam().rank, GetParam().grid);
};

TEST_P(GroupsTest, EveryExtentHasAPlaceOfItsOwn) {
  std::set<std::uint64_t> places;
  for (const Coord& extent : extents_) EXPECT_TRUE(places.insert(groups_.order_of(extent)).second);
}

TEST_P(GroupsTest, AGroupHasAsManyExtentsAsItSays) {
  std::map<std::uint64_t, std::uint64_t> count;
  for (const Coord& extent : extents_) ++count[groups_.group_of(extent)];
  for (const Coord& extent : extents_)
    EXPECT_EQ(groups_.extents_in_group(extent, GetParam().grid[0]), count[groups_.group_of(extent)]);
}

TEST_P(GroupsTest, GroupsFollowEachOtherInTheOrderOfPlaces) {
  std::map<std::uint64_t, std::uint64_t> group_at;
  for (const Coord& extent : extents_) group_at[groups_.order_of(extent)] = groups_.group_of(extent);
  std::uint64_t previous = 0;
  for (const auto& [place, group] : group_at) {
    EXPECT_GE(group, previous);
    previous = group;
  }
}

INSTANTIATE_TEST_SUITE_P(Grids, GroupsTest,
                         testing::Values(Grid{1, {50, 0, 0}}, Grid{2, {1, 1, 0}}, Grid{2, {7, 25, 0}},
                                         Grid{2, {9, 128, 0}}, Grid{3, {4, 5, 6}}, Grid{3, {2, 6, 33}},
                                         Grid{3, {3, 1, 40}}));

TEST(GroupsOfGrowingImagesTest, AnImageWithoutALastRowHasFullBandsOnly) {
  const Groups groups(2, {0, 5, 0}, kLargeExtent);
  EXPECT_EQ(groups.extents_in_group({7, 2, 0}, UINT64_MAX), 15u);
  EXPECT_EQ(groups.extents_in_group({7, 2, 0}, 8), 10u);
}

}  // namespace
}  // namespace mdfs::layout
