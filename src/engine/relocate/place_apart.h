// Blocks for a new piece, on disks where the other piece does not lie.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "engine/core.h"
#include "format/stored_extent.h"
#include "store/store.h"

namespace mdfs::engine {

struct PieceToPlace {
  store::AllocationRequest where;  // disk: that of the placement; also the owner and the policy
  std::uint64_t taken = 0;         // disks where it may not lie, a bit each
  std::uint64_t blocks = 0;
  bool on_one_disk = false;  // not on several, if no disk has room for all
  bool contiguous = false;   // in one run
};

// After the disk of the placement the emptiest one, so that the pieces of a lost disk come on all others alike; on
// several disks if none has room for all. Takes from the reservation what that has. False: there is no room, and
// nothing is allocated. `to` is empty before.
// `free_blocks`: BlockSpace::free_of_disks().
bool place_apart(Core& core, const PieceToPlace& piece, std::span<const std::uint64_t> free_blocks,
                 store::Reservation& reservation, format::Runs& to);

}  // namespace mdfs::engine
