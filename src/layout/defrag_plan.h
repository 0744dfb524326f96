// The plan of a defragmentation: the moves after which typical windows lie in fewer runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "layout/fragmentation.h"

namespace mdfs::layout {

// A group to be relocated as a whole: extents that lie in one run of one disk in a fresh copy.
struct GroupMove {
  std::vector<geometry::Coord> extents;  // in their new order
  unsigned disk = 0;
  std::uint64_t bytes = 0;  // of whole blocks
};

// For a part of an image, or for all of it.
struct DefragPlan {
  std::vector<GroupMove> moves;
  std::uint64_t stored_bytes = 0;  // of the examined part, in whole blocks
  std::uint64_t next = 0;          // start of the next part; 0: this was the last one
};

// The blocks that are free on a disk.
using RoomOf = std::function<std::uint64_t(unsigned disk)>;

// Plans moves for two kinds of groups among `places`.
// Misplaced extents: all groups with extents on other disks than their placement names go home, together with the
// groups between which these extents lay. They go if the sum of the times of typical windows decreases. The time of a
// window is that of its slowest disk, by its blocks and runs, over its share of the image.
// Fragmented groups: each other group is judged on its own. It is moved if the windows around it lie in fewer runs in
// sum; a single window may lie in more, as in a fresh copy. Later groups are judged as if earlier ones had been moved.
// Groups in good order are left out. Deterministic; pure.
std::vector<GroupMove> plan_defrag(const ImageLayout& image, std::span<const ExtentPlace> places, const RoomOf& room);

}  // namespace mdfs::layout
