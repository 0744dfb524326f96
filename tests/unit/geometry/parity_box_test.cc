// The extents that share a parity.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/parity_box.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>

namespace mdfs::geometry {
namespace {

constexpr Coord kLarge = {1000, 1000, 1000, 1000, 1000};

Coord sides(unsigned rank, const Coord& grid, unsigned width, std::uint32_t record_bytes = 32) {
  return parity_box(rank, grid, page_box(rank, record_bytes), width);
}

TEST(ParityBoxTest, BoxesAreSquareAlongTheTwoFastestAxes) {
  EXPECT_EQ(sides(2, kLarge, 2), (Coord{1, 2}));
  EXPECT_EQ(sides(2, kLarge, 4), (Coord{2, 2}));
  EXPECT_EQ(sides(2, kLarge, 8), (Coord{2, 4}));
  EXPECT_EQ(sides(3, kLarge, 4), (Coord{1, 2, 2}));
  EXPECT_EQ(sides(3, kLarge, 8), (Coord{1, 2, 4}));
  EXPECT_EQ(sides(1, kLarge, 4), (Coord{4}));
}

TEST(ParityBoxTest, WhereTheGridIsNarrowBoxesReachAlongOtherAxes) {
  EXPECT_EQ(sides(2, {1000, 1}, 4), (Coord{4, 1}));
  EXPECT_EQ(sides(2, {1, 1000}, 4), (Coord{1, 4}));
  EXPECT_EQ(sides(3, {1000, 1, 1}, 4), (Coord{4, 1, 1}));
  EXPECT_EQ(sides(2, {1, 1}, 4), (Coord{1, 1}));
}

TEST(ParityBoxTest, APageOfFewRecordsBoundsItsBoxes) {
  const PageBox page = page_box(2, 1052);  // 256 checksums each
  ASSERT_EQ(page.places, 2u);
  const Coord box = parity_box(2, kLarge, page, 8);
  EXPECT_EQ(places_of_box(2, page, box, 0), 0b11u);
}

RC_GTEST_PROP(ParityBoxTest, BoxesPartitionThePage, (unsigned seed)) {
  const unsigned rank = 1 + seed % 5, width = 1u << (seed / 5 % 4);
  const PageBox page = page_box(rank, 32 + seed / 20 % 1000);
  const Coord box = parity_box(rank, kLarge, page, width);
  std::uint64_t seen = 0;
  for (unsigned place = 0; place < page.places; ++place) {
    const std::uint64_t places = places_of_box(rank, page, box, place);
    RC_ASSERT((places >> place & 1) != 0);
    RC_ASSERT(std::popcount(places) == static_cast<int>(std::min(width, page.places)));
    RC_ASSERT(((seen & places) == 0 || (seen & places) == places));
    seen |= places;
  }
}

RC_GTEST_PROP(ParityGroupsTest, NoTwoExtentsOfAGroupLieOnOneDisk, (std::vector<unsigned> disks, unsigned most)) {
  disks.resize(std::min<std::size_t>(disks.size(), 16));
  most %= 9;
  std::vector<ExtentOnDisks> extents;
  for (unsigned i = 0; i < disks.size(); ++i)
    extents.push_back({i, disks[i] % 7 == 6 ? 0 : std::uint64_t{1} << (disks[i] % 7)});
  std::uint64_t seen = 0;
  for (const std::uint64_t group : parity_groups(extents, most)) {
    RC_ASSERT((group != 0 && (group & seen) == 0));
    RC_ASSERT(std::popcount(group) <= static_cast<int>(std::max(1u, most)));
    seen |= group;
    std::uint64_t used = 0;
    for (const ExtentOnDisks& extent : extents) {
      if ((group >> extent.place & 1) == 0) continue;
      RC_ASSERT((used & extent.disks) == 0);
      RC_ASSERT((extent.disks != 0 || std::has_single_bit(group)));
      used |= extent.disks;
    }
  }
  RC_ASSERT(seen == (std::uint64_t{1} << extents.size()) - 1);
}

TEST(ParityBoxTest, GroupsAreSmallerWhereExtentsAreLargeOrDisksFew) {
  EXPECT_EQ(most_group_members(4, 1 << 20, 8), 4u);
  EXPECT_EQ(most_group_members(8, 3 << 20, 12), 5u);
  EXPECT_EQ(most_group_members(8, 16 << 20, 12), 1u);
  EXPECT_EQ(most_group_members(8, 1 << 20, 5), 4u);
  EXPECT_EQ(most_group_members(4, 1 << 20, 1), 1u);
}

TEST(ParityGroupsTest, ACrowdedDiskLeavesNoExtentAlone) {
  const std::vector<ExtentOnDisks> extents = {{0, 1}, {1, 1}, {2, 2}, {3, 4}};
  const std::vector<std::uint64_t> groups = parity_groups(extents, 4);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(std::popcount(groups[0]), 2);
  EXPECT_EQ(std::popcount(groups[1]), 2);
}

}  // namespace
}  // namespace mdfs::geometry
