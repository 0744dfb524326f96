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

constexpr std::uint64_t kLargeUnit = 256u << 10;  // about ten columns of three rows make a group

std::vector<Coord> all_units(unsigned rank, const Coord& grid) {
  std::vector<Coord> units;
  for (std::uint64_t a = 0; a < grid[0]; ++a)
    for (std::uint64_t b = 0; b < (rank > 1 ? grid[1] : 1); ++b)
      for (std::uint64_t c = 0; c < (rank > 2 ? grid[2] : 1); ++c) units.push_back({a, b, c});
  return units;
}

struct Grid {
  unsigned rank;
  Coord grid;
};

class GroupsTest : public testing::TestWithParam<Grid> {
 protected:
  const Groups groups_{GetParam().rank, GetParam().grid, kLargeUnit};
  const std::vector<Coord> units_ = all_units(GetParam().rank, GetParam().grid);
};

TEST_P(GroupsTest, EveryExtentHasAPlaceOfItsOwn) {
  std::set<std::uint64_t> places;
  for (const Coord& unit : units_) EXPECT_TRUE(places.insert(groups_.order_of(unit)).second);
}

TEST_P(GroupsTest, AGroupHasAsManyExtentsAsItSays) {
  std::map<std::uint64_t, std::uint64_t> count;
  for (const Coord& unit : units_) ++count[groups_.group_of(unit)];
  for (const Coord& unit : units_)
    EXPECT_EQ(groups_.units_in_group(unit, GetParam().grid[0]), count[groups_.group_of(unit)]);
}

TEST_P(GroupsTest, GroupsFollowEachOtherInTheOrderOfPlaces) {
  std::map<std::uint64_t, std::uint64_t> group_at;
  for (const Coord& unit : units_) group_at[groups_.order_of(unit)] = groups_.group_of(unit);
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
  const Groups groups(2, {0, 5, 0}, kLargeUnit);
  EXPECT_EQ(groups.units_in_group({7, 2, 0}, UINT64_MAX), 15u);
  EXPECT_EQ(groups.units_in_group({7, 2, 0}, 8), 10u);
}

}  // namespace
}  // namespace mdfs::layout
