// The work of a rebuild, piece by piece, and what planners share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "geometry/plan.h"
#include "sim/system.h"

namespace mdfs::sim {

// A piece of the work: all its reads at once, then all its writes at once.
struct RebuildPiece {
  std::vector<Request> reads, writes;
  // The first of a step: the mount waits for readers before the step, too.
  bool begins_step = false;
};
struct DiskShare {
  std::uint64_t read_bytes = 0, written_bytes = 0;
  std::uint64_t bytes() const { return read_bytes + written_bytes; }
};
// All extents of the image with a piece on the lost disk, in the order of the mount. One of two copies is read from its
// other disk. A member of a group is made from the other members and the parity, and a parity from all members. Each
// piece is written to the disk, of those without another one, that has the most room.
struct RebuildPlan {
  std::vector<RebuildPiece> pieces;
  std::uint64_t extents = 0;     // that have lost a piece; a lost parity counts as one
  std::uint64_t bytes = 0;       // lost, of whole blocks
  std::vector<DiskShare> disks;  // the lost one has nothing to do
  // The bytes that the busiest disk reads and writes, over the mean of the disks that are left.
  double imbalance = 1;
};
// Makes the requests of a mount for the parts, and counts their bytes in the shares of their disks.
RebuildPiece piece_of(const System& system, const std::vector<geometry::PlanPart>& reads,
                      const std::vector<geometry::PlanPart>& writes, std::vector<DiskShare>& shares);

}  // namespace mdfs::sim
