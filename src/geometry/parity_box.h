// The extents that share a parity: boxes of a page of records, and groups of one box on different disks. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "geometry/geometry.h"
#include "geometry/page.h"

namespace mdfs::geometry {

// Extents that share a parity where none says otherwise, so that a lost disk is rebuilt at the same width if that can
// be: 4 or 2; 1: too few disks for data for a parity.
inline constexpr unsigned usual_parity_width(std::size_t disks) { return disks >= 6 ? 4 : disks >= 3 ? 2 : 1; }

inline constexpr unsigned kMostParityWidth = 8;
// Extents that a group may be asked to have: 1 (a copy), 2, 4 or 8.
inline constexpr bool is_parity_width(unsigned extents) {
  return extents <= kMostParityWidth && std::has_single_bit(extents);
}
// Of all extents of a group, as raw bytes: what one piece of work holds in memory.
inline constexpr std::uint64_t kMostGroupBytes = 16u << 20;
// Extents of this size that may share a parity, of `width` that are wanted: fewer if they are large, or the disks for
// data few. At least 1.
unsigned most_group_members(unsigned width, std::uint64_t extent_bytes, unsigned disks);

// The sides of the boxes of `width` extents (a power of two, else abort), slowest axis first: as square as can be along
// the two fastest axes, so that a window touches few groups, and an appended slab touches none before it. Where the
// grid or the page is too narrow, boxes reach along slower axes, or have fewer extents.
Coord parity_box(unsigned rank, const Coord& grid, const PageBox& page, unsigned width);
// The places of the box that has this place, a bit each.
std::uint64_t places_of_box(unsigned rank, const PageBox& page, const Coord& box, unsigned place);

struct ExtentOnDisks {
  unsigned place = 0;
  std::uint64_t disks = 0;  // a bit each; 0: no group takes the extent
};
// Groups of at most `most` extents, no two of a group on one disk, as few as can be found: the extents on the most
// crowded disks choose first. Each extent is in one group, perhaps alone. Places of a group are a bit each; groups come
// in order of their lowest places.
std::vector<std::uint64_t> parity_groups(std::span<const ExtentOnDisks> extents, unsigned most);

}  // namespace mdfs::geometry
