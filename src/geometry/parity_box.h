// The extents that share a parity: boxes of a page of records, and groups of one box on different disks. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

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
