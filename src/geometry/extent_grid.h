// The grid of extents: numbers and bytes of extents, and boxes that meet. Boxes are byte boxes (decompose.h). An
// `extent` is the index of one in the grid, slowest axis first. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "geometry/decompose.h"

namespace mdfs::geometry {

// The number of an extent in the grid, row-major, and the extent with a number. Both ignore shape[0]: the grid has no
// end.
std::uint64_t extent_index(const ByteGeometry& geometry, const Coord& extent);
Coord extent_coord(const ByteGeometry& geometry, std::uint64_t index);

// The offset in the row-major array of a byte of an extent, in bytes. The byte lies inside the array. Ignores shape[0].
std::uint64_t canonical_offset(const ByteGeometry& geometry, const Coord& extent, std::uint32_t byte);
// Bytes of an extent that lie inside the array; the others are padding.
std::uint64_t bytes_inside(const ByteGeometry& geometry, const Coord& extent);
// `end`, a byte of an extent, moved behind the padding that follows the bytes before it. Ignores shape[0].
std::uint32_t end_with_padding(const ByteGeometry& geometry, const Coord& extent, std::uint32_t end);

// Bytes of a box.
std::uint64_t box_bytes(unsigned rank, const Box& box);
// True if the boxes share a byte.
bool overlap(unsigned rank, const Box& one, const Box& two);
// The part of a box of the array that lies in an extent, as a box of the array; nothing if there is none.
std::optional<Box> part_in_extent(const ByteGeometry& geometry, const Coord& extent, const Box& box);

// The bytes [begin, end) of an extent.
struct ByteRun {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool operator==(const ByteRun&) const = default;
};
// The bytes of an extent of this shape under a box inside it, ascending. Rows that follow one another are one run. The
// shape is that of the extent, in bytes on its fastest axis, at most kMaxExtentBytes.
std::vector<ByteRun> byte_runs(unsigned rank, const Coord& shape, const Box& box);
// The whole parts of `part_bytes` that those bytes touch, ascending. Neighbouring parts are one run, and the last part
// ends with the extent. The cost grows with the rows whose steps exceed a part: a plane across an extent has thousands
// of rows in a few parts.
std::vector<ByteRun> part_runs(unsigned rank, const Coord& shape, const Box& box, std::uint32_t part_bytes);

}  // namespace mdfs::geometry
