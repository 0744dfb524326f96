// Pages of the extent table: each holds the records of a box of extents (FORMAT.md, section 9).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "geometry/geometry.h"

namespace mdfs::geometry {

// The box of extents under a page, its sides in extents, slowest axis first. places = 64, 32, .. 1: the largest power
// of two with places * record_bytes <= 4096. The sides are powers of two that multiply to `places`, spread evenly over
// the axes; the faster axes take what does not divide evenly (rank 2, 64: 8x8; rank 3, 64: 4x4x4; rank 3, 32: 2x4x4).
struct PageBox {
  Coord side{};
  unsigned places = 0;
};
PageBox page_box(unsigned rank, std::uint32_t record_bytes);

// Of the record of an extent with so many checksums (mdfs_extent_record).
inline constexpr std::uint32_t record_bytes(std::uint64_t checksums) {
  return static_cast<std::uint32_t>((28 + 4 * checksums + 7) / 8 * 8);
}

// The place of an extent's record: the number of its page, and its index there (0 .. places - 1, row-major).
struct PagePlace {
  std::uint64_t page = 0;
  unsigned place = 0;
};
// `grid` and `extent`: extents along each axis, and the index of one, slowest axis first. Pages are numbered row-major.
// grid[0] counts for nothing, so growing along the slowest axis changes no number. An index beyond the grid along
// another axis aborts.
PagePlace page_place(unsigned rank, const Coord& grid, const PageBox& box, const Coord& extent);
// The extent at a place: the inverse of page_place().
Coord extent_at(unsigned rank, const Coord& grid, const PageBox& box, const PagePlace& place);

}  // namespace mdfs::geometry
