// The records of extents that a window write is about to replace, for the versions that are read meanwhile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/core.h"
#include "engine/write/publisher.h"
#include "geometry/decompose.h"

namespace mdfs::engine {

// More extents than this are replaced without: versions in the way keep what is in memory, or are given up.
inline constexpr std::size_t kMostReplacedNoted = 65536;

struct Replaced {
  std::vector<std::optional<StoredExtent>> stored;  // of each extent; none: not known
  std::shared_ptr<const store::BlockHold> hold;     // of all their blocks
};

// Called with `publishing` of the object held, before the transaction.
Replaced note_replaced(Core& core, OpenObject& object, const std::vector<Staged>& extents);
// Called while `swapping` is held, before the extents change: gives the versions what they want of them. `changed`: the
// part of the array that changes.
void keep_for_versions(Core& core, OpenObject& object, const std::vector<Staged>& extents, const Replaced& replaced,
                       const geometry::Box& changed);

}  // namespace mdfs::engine
