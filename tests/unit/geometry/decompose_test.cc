// Boxes cut into pieces, and byte ranges cut into boxes.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/decompose.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <vector>

#include "generators.h"
#include "geometry/copy_box.h"

namespace mdfs::geometry {
namespace {

using namespace testing;  // NOLINT: the generators of this folder

Coord plus(const Coord& a, const Coord& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }

RC_GTEST_PROP(DecomposeTest, EveryByteOfTheBoxIsCoveredExactlyOnce, ()) {
  const auto [geometry, box] = any_geometry_and_box();
  std::vector<int> covered(volume(geometry.rank, geometry.shape));
  for (const Piece& piece : decompose(geometry, box)) {
    Coord origin{};
    for (unsigned axis = 0; axis < geometry.rank; ++axis) {
      RC_ASSERT(piece.in_extent.start[axis] + piece.in_extent.length[axis] <= geometry.extent[axis]);
      origin[axis] = piece.extent[axis] * geometry.extent[axis] + piece.in_extent.start[axis];
      RC_ASSERT(origin[axis] == box.start[axis] + piece.in_box[axis]);
    }
    each_index(geometry.rank, origin, piece.in_extent.length,
               [&](const Coord& index) { ++covered[linear(geometry.rank, geometry.shape, index)]; });
  }
  std::vector<int> expected(covered.size());
  each_index(geometry.rank, box.start, box.length,
             [&](const Coord& index) { expected[linear(geometry.rank, geometry.shape, index)] = 1; });
  RC_ASSERT(covered == expected);
}

RC_GTEST_PROP(DecomposeTest, PiecesComeInRowMajorOrderAndAreCounted, ()) {
  const auto [geometry, box] = any_geometry_and_box();
  const auto pieces = decompose(geometry, box);
  RC_ASSERT(pieces.size() == piece_count(geometry, box));
  for (std::size_t i = 1; i < pieces.size(); ++i) RC_ASSERT(pieces[i - 1].extent < pieces[i].extent);
}

TEST(DecomposeTest, AnEmptyBoxHasNoPieces) {
  const ByteGeometry geometry{2, {100, 100, 0}, {10, 10, 0}};
  EXPECT_TRUE(decompose(geometry, {{5, 5, 0}, {0, 10, 0}}).empty());
  EXPECT_EQ(piece_count(geometry, {{5, 5, 0}, {0, 10, 0}}), 0u);
}

TEST(DecomposeTest, CountsSaturateForABoxOfAbsurdSize) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 61;
  const ByteGeometry geometry{2, {kHuge, kHuge, 0}, {1, 1, 0}};
  EXPECT_EQ(piece_count(geometry, {{0, 0, 0}, {kHuge, kHuge, 0}}), std::numeric_limits<std::uint64_t>::max());
}

TEST(DecomposeTest, AWindowOfThePaperTouchesTwentyFiveExtents) {
  const ByteGeometry geometry{2, {8192, 8192 * 3, 0}, {128, 384, 0}};
  EXPECT_EQ(decompose(geometry, {{75, 67 * 3, 0}, {512, 512 * 3, 0}}).size(), 25u);
}

RC_GTEST_PROP(RangeBoxesTest, BoxesCoverTheRangeInOrder, ()) {
  const unsigned rank = any_rank();
  const Coord shape = any_lengths(rank, 1, 12);
  const std::uint64_t total = volume(rank, shape);
  const auto offset = *rc::gen::inRange<std::uint64_t>(0, total + 1);
  const auto length = *rc::gen::inRange<std::uint64_t>(0, total - offset + 1);
  const auto boxes = range_boxes(rank, shape, offset, length);
  RC_ASSERT(boxes.size() <= 2 * rank - 1);
  std::uint64_t position = offset;
  for (const RangeBox& range : boxes) {
    RC_ASSERT(range.offset == position - offset);
    each_index(rank, range.box.start, range.box.length,
               [&](const Coord& index) { RC_ASSERT(linear(rank, shape, index) == position++); });
  }
  RC_ASSERT(position == offset + length);
}

TEST(RangeBoxesTest, AWholeImageIsOneBox) {
  const auto boxes = range_boxes(3, {4, 5, 6}, 0, 120);
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_EQ(boxes[0].box, (Box{{0, 0, 0}, {4, 5, 6}}));
}

TEST(RangeBoxesTest, ARangeBehindTheLastSlabIsCutAllTheSame) {
  const auto boxes = range_boxes(2, {2, 10, 0}, 35, 10);
  ASSERT_EQ(boxes.size(), 2u);
  EXPECT_EQ(boxes[0].box, (Box{{3, 5, 0}, {1, 5, 0}}));
  EXPECT_EQ(boxes[1].box, (Box{{4, 0, 0}, {1, 5, 0}}));
}

RC_GTEST_PROP(ByteBoxTest, BytesOfTheBoxAreThoseOfTheWindow, ()) {
  const Geometry geometry = any_geometry();
  Window window = any_window(geometry);
  window.channel.reset();
  RC_ASSERT(volume(geometry.rank, byte_box(geometry, window).length) == window_bytes(geometry, window));
  RC_ASSERT(byte_geometry(geometry).grid() == geometry.grid());
  RC_ASSERT(byte_geometry(geometry).extent_bytes() == geometry.extent_bytes());
}

RC_GTEST_PROP(CopyByPiecesTest, AnImageCutIntoExtentsAndReadThroughAWindowIsUnchanged, ()) {
  const auto [geometry, box] = any_geometry_and_box();
  ByteVector image(volume(geometry.rank, geometry.shape));
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<std::byte>(i * 31 + 7);
  ByteVector window(volume(geometry.rank, box.length)), expected(window.size());
  copy_box(geometry.rank, box.length, image, geometry.shape, box.start, expected, box.length, {});
  for (const Piece& piece : decompose(geometry, box)) {
    ByteVector extent(geometry.extent_bytes());
    Coord origin{}, present{};  // the stored extent: what the image has of it, zeros behind
    for (unsigned axis = 0; axis < geometry.rank; ++axis) {
      origin[axis] = piece.extent[axis] * geometry.extent[axis];
      present[axis] = std::min(geometry.extent[axis], geometry.shape[axis] - origin[axis]);
    }
    copy_box(geometry.rank, present, image, geometry.shape, origin, extent, geometry.extent, {});
    copy_box(geometry.rank, piece.in_extent.length, extent, geometry.extent, piece.in_extent.start, window, box.length,
             piece.in_box);
    RC_ASSERT(plus(piece.in_box, box.start) == plus(origin, piece.in_extent.start));
  }
  RC_ASSERT(window == expected);
}

}  // namespace
}  // namespace mdfs::geometry
