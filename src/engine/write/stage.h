// Staging: encodes extents, allocates their blocks and writes them to their disks. No reader sees them until they are
// published.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/core.h"
#include "engine/write/staged.h"

namespace mdfs::engine {

// Encodes on all cores, allocates in grid order so that neighbours lie together on each disk, and writes to all disks
// at once. Blocks come out of `reservation` as far as it reaches. After an error no blocks stay allocated. Any thread.
// `stop` ends the call with kCancelled before it encodes another extent. Several threads call `stop`.
Status stage(Core& core, OpenObject& object, std::vector<Staged>& extents, store::Reservation& reservation,
             const Stop& stop = {});

// Frees the blocks of staged extents that have not been published.
void abandon(Core& core, std::vector<Staged>& extents);

// A disk may fail after data have been written to it, and before their transaction: then once more, to other disks.
template <typename Write>
Status write_without_failed_disks(const Write& write) {
  for (;;) {
    Status written = write();
    if (written.ok() || written.error().code != Errc::kDiskOut) return written;
  }
}

}  // namespace mdfs::engine
