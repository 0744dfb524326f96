// Pages of extent tables: boxes of extents.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/page.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <utility>

#include "generators.h"

namespace mdfs::geometry {
namespace {

using namespace testing;  // NOLINT: the generators of this folder

TEST(PageBoxTest, SidesAreThoseOfTheFormatDocument) {
  EXPECT_EQ(page_box(1, 24).side, (Coord{64, 0, 0}));
  EXPECT_EQ(page_box(2, 24).side, (Coord{8, 8, 0}));
  EXPECT_EQ(page_box(3, 24).side, (Coord{4, 4, 4}));
  EXPECT_EQ(page_box(3, 64).places, 64u);
  EXPECT_EQ(page_box(3, 72).side, (Coord{2, 4, 4}));  // 32 places
  EXPECT_EQ(page_box(2, 72).side, (Coord{4, 8, 0}));
  EXPECT_EQ(page_box(3, 200).side, (Coord{2, 2, 4}));  // 16 places
  EXPECT_EQ(page_box(2, 4120).places, 1u);             // a record of the largest raw extent
}

RC_GTEST_PROP(PagePlaceTest, NoTwoExtentsShareAPlaceAndEachIsFoundAtItsPlace, ()) {
  const unsigned rank = any_rank();
  const Coord grid = any_lengths(rank, 1, 11);
  const PageBox box = page_box(rank, *rc::gen::element<std::uint32_t>(24, 72, 136, 520, 4120));
  std::set<std::pair<std::uint64_t, unsigned>> seen;
  each_index(rank, {}, grid, [&](const Coord& extent) {
    const PagePlace place = page_place(rank, grid, box, extent);
    RC_ASSERT(place.place < box.places);
    RC_ASSERT(seen.emplace(place.page, place.place).second);
    const Coord origin = extent_at(rank, grid, box, {place.page, 0});
    std::uint64_t expected = 0;
    for (unsigned axis = 0; axis < rank; ++axis) {
      RC_ASSERT(extent[axis] - origin[axis] < box.side[axis]);
      expected = expected * box.side[axis] + extent[axis] - origin[axis];
    }
    RC_ASSERT(place.place == expected);
    RC_ASSERT(extent_at(rank, grid, box, place) == extent);
  });
}

RC_GTEST_PROP(PagePlaceTest, GrowingAlongTheSlowestAxisChangesNoPlace, ()) {
  const unsigned rank = any_rank();
  const Coord grid = any_lengths(rank, 1, 11);
  Coord grown = grid;
  grown[0] += *rc::gen::inRange<std::uint64_t>(1, 100);
  const PageBox box = page_box(rank, 24);
  each_index(rank, {}, grid, [&](const Coord& extent) {
    const PagePlace before = page_place(rank, grid, box, extent);
    const PagePlace after = page_place(rank, grown, box, extent);
    RC_ASSERT((before.page == after.page && before.place == after.place));
  });
}

TEST(PagePlaceTest, APlaneAcrossALargeVolumeTouchesFewPages) {
  // 4096^3 in extents of 64^3: a plane of constant x.
  const Coord grid{64, 64, 64};
  const PageBox box = page_box(3, 24);
  std::set<std::uint64_t> pages;
  each_index(3, {0, 0, 17}, {64, 64, 1},
             [&](const Coord& extent) { pages.insert(page_place(3, grid, box, extent).page); });
  EXPECT_EQ(pages.size(), 256u);
}

}  // namespace
}  // namespace mdfs::geometry
