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

// Copies a box between two row-major arrays: `length` rows of bytes from `from` (array of shape from_shape, at
// from_start) to `to`. All in bytes on the fastest axis. Aborts on a violation: the box must lie in both shapes,
// and its last byte in both buffers; a buffer may end before its array does (an incomplete last slab).
void copy_box(unsigned rank, const Coord& length, ConstBytes from, const Coord& from_shape, const Coord& from_start,
              MutableBytes to, const Coord& to_shape, const Coord& to_start);
void fill_box(unsigned rank, const Coord& length, std::byte value, MutableBytes to, const Coord& to_shape,
              const Coord& to_start);

// Copies one channel of interleaved samples to or from a plane. samples.size() == plane.size() * channels (abort).
void take_channel(ConstBytes samples, unsigned channels, unsigned channel, unsigned element_bytes, MutableBytes plane);
void put_channel(ConstBytes plane, unsigned channels, unsigned channel, unsigned element_bytes, MutableBytes samples);

// The [first, last) ranges of `sub_block` sized parts of the extent that the box inside it touches, as a bitmap of
// parts, part i = bytes [i * sub_block, (i + 1) * sub_block) of the row-major extent.
std::vector<bool> touched_sub_blocks(const ByteGeometry& geometry, const Box& in_extent, std::uint64_t sub_block);

// Extent tables: a page of records covers a box of extents. places = 64, 32, .. 1: the largest power of two (at most
// 64) with places * record_bytes <= 4096. Box sides: powers of two that multiply to `places`, spread evenly over the
// axes, the faster axes taking what does not divide evenly (rank 2, 64: 8x8; rank 3, 64: 4x4x4; rank 3, 32: 2x4x4).
struct PageBox {
  Coord side{};
  unsigned places = 0;
};
PageBox page_box(unsigned rank, std::uint32_t record_bytes);
// Page of an extent, and its place in the page (0 .. places - 1, slowest axis outermost). Pages are numbered so
// that growing along the slowest axis changes no number: row-major over the grid of pages of the other axes, the
// slowest axis outermost. grid = geometry.grid().
struct PagePlace {
  std::uint64_t page = 0;
  unsigned place = 0;
};
PagePlace page_place(unsigned rank, const Coord& grid, const PageBox& box, const Coord& extent);
// The first extent index of a page.
Coord page_origin(unsigned rank, const Coord& grid, const PageBox& box, std::uint64_t page);

}  // namespace mdfs::geometry
