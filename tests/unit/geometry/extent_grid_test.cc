// Numbers and bytes of extents, against arrays that are looked at byte by byte.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/extent_grid.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "generators.h"

namespace mdfs::geometry {
namespace {

using namespace testing;  // NOLINT: the generators of this folder

Coord any_extent(const ByteGeometry& geometry) {
  const Box one = any_box(geometry.rank, geometry.grid());
  return one.start;
}

RC_GTEST_PROP(ExtentGridTest, ExtentsAreNumberedRowMajorAndFoundByTheirNumber, ()) {
  const ByteGeometry geometry = any_geometry_and_box().geometry;
  std::uint64_t expected = 0;
  each_index(geometry.rank, Coord{}, geometry.grid(), [&](const Coord& extent) {
    RC_ASSERT(extent_index(geometry, extent) == expected);
    RC_ASSERT(extent_coord(geometry, expected) == extent);
    ++expected;
  });
}

RC_GTEST_PROP(ExtentGridTest, BytesInsideHaveTheirPlaceInTheArrayAndTheOthersArePadding, ()) {
  const ByteGeometry geometry = any_geometry_and_box().geometry;
  const Coord extent = any_extent(geometry);
  std::uint64_t inside = 0, byte = 0;
  each_index(geometry.rank, Coord{}, geometry.extent, [&](const Coord& in_extent) {
    Coord at{};
    bool is_inside = true;
    for (unsigned axis = 0; axis < geometry.rank; ++axis) {
      at[axis] = extent[axis] * geometry.extent[axis] + in_extent[axis];
      is_inside = is_inside && at[axis] < geometry.shape[axis];
    }
    if (is_inside) {
      ++inside;
      RC_ASSERT(canonical_offset(geometry, extent, static_cast<std::uint32_t>(byte)) ==
                linear(geometry.rank, geometry.shape, at));
    }
    ++byte;
  });
  RC_ASSERT(bytes_inside(geometry, extent) == inside);
}

TEST(ExtentGridTest, AnExtentBeyondTheEndHasNoBytesInside) {
  EXPECT_EQ(bytes_inside({2, {10, 10}, {4, 4}}, {3, 0}), 0u);
  EXPECT_EQ(bytes_inside({2, {10, 10}, {4, 4}}, {2, 2}), 4u);
}

TEST(ExtentGridTest, TheEndMovesBehindPaddingAlone) {
  // Two of four columns of the last extent of a row are padding.
  const ByteGeometry geometry{2, {10, 10}, {4, 4}};
  EXPECT_EQ(end_with_padding(geometry, {0, 2}, 2), 4u);
  EXPECT_EQ(end_with_padding(geometry, {0, 2}, 14), 16u);
  EXPECT_EQ(end_with_padding(geometry, {0, 2}, 1), 1u);
  EXPECT_EQ(end_with_padding(geometry, {0, 1}, 2), 2u);
}

TEST(ExtentGridTest, TheEndMovesBehindPaddingAlongSeveralAxes) {
  // The last extent has 1 of 2 rows and 3 of 4 columns inside.
  const ByteGeometry geometry{3, {8, 3, 7}, {2, 2, 4}};
  EXPECT_EQ(end_with_padding(geometry, {0, 1, 1}, 3), 8u);
  EXPECT_EQ(end_with_padding(geometry, {0, 1, 1}, 11), 16u);
  EXPECT_EQ(end_with_padding(geometry, {0, 0, 1}, 3), 4u);
}

RC_GTEST_PROP(ExtentGridTest, RunsAreTheBytesOfTheBoxAndDoNotTouch, ()) {
  const auto [geometry, box] = any_geometry_and_box();
  std::vector<int> expected(volume(geometry.rank, geometry.shape)), found(expected.size());
  each_index(geometry.rank, box.start, box.length,
             [&](const Coord& index) { expected[linear(geometry.rank, geometry.shape, index)] = 1; });
  const std::vector<ByteRun> runs = byte_runs(geometry.rank, geometry.shape, box);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    RC_ASSERT((i == 0 || runs[i - 1].end < runs[i].begin));
    for (std::uint32_t byte = runs[i].begin; byte < runs[i].end; ++byte) ++found[byte];
  }
  RC_ASSERT(found == expected);
  RC_ASSERT(box_bytes(geometry.rank, box) == static_cast<std::uint64_t>(std::count(found.begin(), found.end(), 1)));
}

RC_GTEST_PROP(ExtentGridTest, RunsOfPartsAreThePartsThatTheBytesOfTheBoxTouch, ()) {
  const auto [geometry, box] = any_geometry_and_box();
  const auto part_bytes = *rc::gen::inRange<std::uint32_t>(1, 40);
  const auto bytes = static_cast<std::uint32_t>(volume(geometry.rank, geometry.shape));
  std::vector<ByteRun> expected;
  for (const ByteRun& run : byte_runs(geometry.rank, geometry.shape, box))
    for (std::uint32_t part = run.begin / part_bytes; part * part_bytes < run.end; ++part) {
      const std::uint32_t begin = part * part_bytes, end = std::min(begin + part_bytes, bytes);
      if (!expected.empty() && expected.back().end >= begin)
        expected.back().end = end;
      else
        expected.push_back({begin, end});
    }
  RC_ASSERT(part_runs(geometry.rank, geometry.shape, box, part_bytes) == expected);
}

TEST(ExtentGridTest, AYzPlaneOfAnExtentIsOneRunOfParts) {
  const std::vector<ByteRun> runs = part_runs(3, {64, 64, 64}, {{0, 0, 17}, {64, 64, 1}}, 16384);
  EXPECT_EQ(runs, (std::vector<ByteRun>{{0, 64 * 64 * 64}}));
  EXPECT_EQ(part_runs(3, {64, 64, 64}, {{9, 0, 0}, {1, 64, 64}}, 16384), (std::vector<ByteRun>{{32768, 49152}}));
}

RC_GTEST_PROP(ExtentGridTest, BoxesOverlapWhereTheyShareAByteAndPartsAreWhatTheyShare, ()) {
  const auto [geometry, box] = any_geometry_and_box();
  const Coord extent = any_extent(geometry);
  Box of_extent;
  std::uint64_t shared = 0;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    of_extent.start[axis] = extent[axis] * geometry.extent[axis];
    of_extent.length[axis] = geometry.extent[axis];
  }
  const unsigned rank = geometry.rank;
  const Box wanted = box;
  each_index(rank, of_extent.start, of_extent.length, [&](const Coord& index) {
    bool is_in = true;
    for (unsigned axis = 0; axis < rank; ++axis)
      is_in = is_in && index[axis] >= wanted.start[axis] && index[axis] < wanted.start[axis] + wanted.length[axis];
    shared += is_in;
  });
  const std::optional<Box> part = part_in_extent(geometry, extent, box);
  RC_ASSERT(overlap(rank, of_extent, box) == (shared > 0));
  RC_ASSERT(part.has_value() == (shared > 0));
  if (part) RC_ASSERT(box_bytes(rank, *part) == shared);
  if (part) RC_ASSERT((overlap(rank, of_extent, *part) && overlap(rank, *part, box)));
}

}  // namespace
}  // namespace mdfs::geometry
