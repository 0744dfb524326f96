// Decomposes a window into parts of extents, and a byte range of a file into boxes.
// All boxes are byte boxes: the fastest axis counts bytes (samples x sample_bytes), so that one rule serves all element
// types. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "geometry/geometry.h"

namespace mdfs::geometry {

// A half-open box: start and length of each axis, slowest axis first, the fastest one in bytes.
struct Box {
  Coord start{};
  Coord length{};
  bool operator==(const Box&) const = default;
};

// Steps an index through [first, last) of the slowest `rank` axes in row-major order. False after the last: it is at
// the first again.
bool step_in(unsigned rank, const Coord& first, const Coord& last, Coord& index);

// A geometry reduced to bytes. Slowest axis first.
struct ByteGeometry {
  unsigned rank = 0;
  Coord shape{};       // shape[rank - 1] in bytes
  Coord extent{};      // extent[rank - 1] in bytes
  Coord grid() const;  // extents along each axis
  std::uint64_t extent_bytes() const;
};
// Both abort on a rank that is not 1..5. The geometry has passed check(), and the window lies inside the image.
ByteGeometry byte_geometry(const Geometry& geometry);
Box byte_box(const Geometry& geometry, const Window& window);  // ignores window.channel

// The part of one extent that lies in a box.
struct Piece {
  Coord extent{};  // index in the grid, slowest first
  Box in_extent;   // relative to the extent's first byte
  Coord in_box{};  // where the part starts, relative to the box's start
};
// Number of extents under the box; saturating. Call it before decomposing a box of unknown size. Here and in
// decompose() a box whose end does not fit 64 bits aborts; shape does not count.
std::uint64_t piece_count(const ByteGeometry& geometry, const Box& box);
// All extents under the box, in row-major order of their index (slowest axis outermost). None under an empty box.
std::vector<Piece> decompose(const ByteGeometry& geometry, const Box& box);

// A box that is contiguous in its array, as part of a byte range.
struct RangeBox {
  Box box;
  std::uint64_t offset;  // bytes from the start of the range to the box's first byte
};
// The bytes [offset, offset + length) of a row-major array of `shape` (fastest axis in bytes), as at most
// 2 * rank - 1 boxes in ascending order of offset. Ignores shape[0]: the array has no end. Aborts if the range does not
// end within 64 bits.
std::vector<RangeBox> range_boxes(unsigned rank, const Coord& shape, std::uint64_t offset, std::uint64_t length);

}  // namespace mdfs::geometry
