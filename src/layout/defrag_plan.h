// What to move so that typical windows lie in fewer runs: the plan of defragmentation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "layout/fragmentation.h"

namespace mdfs::layout {

// A group to be relocated as a whole: the extents that a fresh copy would have in one run of one disk.
struct GroupMove {
  std::vector<geometry::Coord> extents;  // in the order in which they are to lie
  unsigned disk = 0;
  std::uint64_t bytes = 0;  // of whole blocks
};

// Of a part of an image, or of all of it.
struct DefragPlan {
  std::vector<GroupMove> moves;
  std::uint64_t stored_bytes = 0;  // of what was looked at, in whole blocks
  std::uint64_t next = 0;          // where the next part begins; 0: that was the last one
};

// The blocks that a disk could give out now.
using RoomOf = std::function<std::uint64_t(unsigned disk)>;

// Two kinds of the groups among `places` are to be moved. Where extents lie on other disks than their placement says,
// all groups with such extents go home, and with them those between which they lay, if typical windows are then ready
// sooner in sum: the disk that takes longest counts, for its blocks and its runs, over the share of the image that it
// is meant to have. Otherwise each group is judged on its own: it is moved if typical windows around it lie in fewer
// runs in sum; a single one of them may lie in more runs than before, as in a fresh copy as far as the group goes. The
// later ones are judged as if the earlier ones had been moved. Groups that lie as they should are left out.
// Deterministic; pure.
std::vector<GroupMove> plan_defrag(const LaidImage& image, std::span<const ExtentPlace> places, const RoomOf& room);

}  // namespace mdfs::layout
