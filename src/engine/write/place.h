// Placing: gives blocks to staged extents, by the placement of their image as long as its disks have room.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/core.h"
#include "engine/write/staged.h"

namespace mdfs::engine {

// Sets the runs of encoded extents, and of their second copies if the object wants them. In order, in contiguous groups
// as large as can be had, on disks that are not among `avoided` (a bit each). Blocks come out of `reservation` as far
// as it reaches. A copy for which no other disk has room is left out. After an error extents may have blocks: the
// caller abandons them.
Status place(Core& core, OpenObject& object, const std::vector<Staged*>& extents, store::Reservation& reservation,
             std::uint64_t avoided);

}  // namespace mdfs::engine
