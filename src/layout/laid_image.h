// An image whose layout is looked at: its grid, its placement, and where its extents lie.
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
  std::uint64_t end = 0;     // behind the highest block of them
  bool in_strip = false;     // not the extent: bytes of it that were appended and lie in a strip
};

// What the figures need to know of an image.
struct LaidImage {
  unsigned rank = 1;
  geometry::Coord grid{};  // extents along each axis, as the image is now
  unsigned disks = 1;      // of its placement
  std::uint32_t block_size = 4096;
  const Groups* groups = nullptr;
  std::function<unsigned(const geometry::Coord&)> placement_disk;
};

}  // namespace mdfs::layout
