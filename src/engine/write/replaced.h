// The records of extents that a window write is about to replace, for versions that are being read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/core.h"
#include "engine/write/publisher.h"
#include "geometry/decompose.h"

namespace mdfs::engine {

// A write of more extents does not collect records. Versions under it keep the blocks in memory, or end.
inline constexpr std::size_t kMostReplacedNoted = 65536;

struct Replaced {
  std::vector<std::optional<MappedExtent>> stored;  // of each extent; none: unknown
  std::shared_ptr<const store::BlockHold> hold;     // of all their blocks
};

// Called before the transaction, while `publishing` of the object is held.
Replaced note_replaced(Core& core, OpenObject& object, const std::vector<Staged>& extents);
// Called while `swapping` is held, before the extents change. Gives the versions the old extents. `changed`: the part
// of the array that changes.
void keep_for_versions(Core& core, OpenObject& object, const std::vector<Staged>& extents, const Replaced& replaced,
                       const geometry::Box& changed);

}  // namespace mdfs::engine
