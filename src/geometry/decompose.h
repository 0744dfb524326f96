// Decomposes a window into parts of extents, and copies boxes: the arithmetic of every read and write.
// Works on the "byte box": the fastest axis counts bytes (samples x sample_bytes), so that one rule serves all
// element types, and a byte range of a file is a handful of boxes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "geometry/geometry.h"

namespace mdfs::geometry {

// A half-open box; the fastest axis is in bytes. Slowest axis first.
struct Box {
  Coord start{};
  Coord length{};
  bool operator==(const Box&) const = default;
};

// A geometry reduced to bytes.
struct ByteGeometry {
  unsigned rank = 0;
  Coord shape{};   // shape[rank - 1] in bytes
  Coord extent{};  // extent[rank - 1] in bytes
  Coord grid() const;
  std::uint64_t extent_bytes() const;
};
ByteGeometry byte_geometry(const Geometry& geometry);
Box byte_box(const Geometry& geometry, const Window& window);  // ignores window.channel

// The part of one extent that lies in a box.
struct Piece {
  Coord extent{};  // index in the grid, slowest first
  Box in_extent;   // relative to the extent's first byte
  Coord in_box{};  // where the part starts, relative to the box's start
};
// Number of extents under the box (saturating). Call it before decomposing a box of unknown size.
std::uint64_t piece_count(const ByteGeometry& geometry, const Box& box);
// All extents under the box, in row-major order of their index (slowest axis outermost).
std::vector<Piece> decompose(const ByteGeometry& geometry, const Box& box);

// The bytes [offset, offset + length) of a row-major array of `shape` (fastest axis in bytes), as at most
// 2 * rank - 1 boxes in ascending order of offset. Ignores shape[0]: the array has no end.
struct RangeBox {
  Box box;
  std::uint64_t offset;  // of the box's first byte, relative to the range's start; the box is contiguous there
};
std::vector<RangeBox> range_boxes(unsigned rank, const Coord& shape, std::uint64_t offset, std::uint64_t length);

}  // namespace mdfs::geometry
