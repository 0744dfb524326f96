// An image whose layout is examined: its grid, its placement, and the places of its extents.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "geometry/geometry.h"
#include "layout/groups.h"

namespace mdfs::layout {

struct ExtentPlace {  // one row of a layout
  geometry::Coord index{};
  unsigned disk = 0;
  std::uint64_t block = 0;
  std::uint64_t stored_bytes = 0;
  std::uint32_t pieces = 1;  // runs on the disk; the first one begins at `block`
  std::uint64_t end = 0;     // end of the highest run
  bool in_strip = false;     // not the extent, but appended bytes of it in a strip
  bool is_copy = false;      // the second copy of the extent, or the parity of a group of which it is the lowest member
  bool is_parity = false;    // of these, a parity
  bool is_leaver = false;    // what a member of that group was before it was written anew
};

// The facts about an image that the figures need.
struct ImageLayout {
  unsigned rank = 1;
  geometry::Coord grid{};  // present extents along each axis
  unsigned disks = 1;      // of its placement
  std::uint32_t block_size = 4096;
  const Groups* groups = nullptr;
  std::function<unsigned(const geometry::Coord&)> placement_disk;
};

}  // namespace mdfs::layout
