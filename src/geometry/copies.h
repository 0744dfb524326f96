// The disks of two copies of an extent, and which copy a window reads. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "geometry/placement.h"

namespace mdfs::geometry {

// The disk of the second copy of an extent, another one than that of the first: the slots behind the first copy's in
// turn, so that a lost disk leaves an equal share of its extents on each of the others (reason: doc/DESIGN.md). On
// unequal disks the slots of the first copy's disk are passed over. A placement on one disk names that one. The
// placement has passed check() (else abort). Arguments as disk_of().
unsigned second_disk_of(const Placement& placement, unsigned rank, std::uint64_t base, const Coord& extent);

// An extent to read: the disks of its copies, and the time that each would take for it.
struct CopiesOfExtent {
  unsigned disk[2] = {};
  double cost[2] = {};
};
// Which copy of each extent to read, 0 or 1, so that the last of them comes as early as can be found: each is read from
// the disk that has it first, then extents change disks while the later disk of the two gains. `queued` has the time
// until each disk is idle; infinity: the disk is lost, and not read unless both are. Costs are not negative, and disks
// are below queued.size() (abort).
std::vector<std::uint8_t> choose_copies(std::span<const CopiesOfExtent> extents, std::span<const double> queued);

}  // namespace mdfs::geometry
