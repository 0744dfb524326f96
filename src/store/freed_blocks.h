// Finds the blocks that a commit freed, from the space pages of that commit and of its parent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "alloc/run.h"
#include "format/commit.h"
#include "store/recovery.h"

namespace mdfs::store {

// Limit of pages that differ, on all disks: reading them takes a second on a disk that reads 100 MiB/s.
inline constexpr std::uint64_t kComparedPagesLimit = 12800;

// Runs in use in the parent of `winner` and free in `winner`, on healthy disks. No run crosses a bitmap page or the end
// of the metadata region. Reads only pages that the two commits do not share. Nothing is returned if the parent's slot
// is lost, if a disk had another size, if more pages differ than the limit, or if a page of the parent cannot be read.
// A later commit that was begun may have overwritten such a page. A page of the winner that cannot be read is skipped,
// because no blocks are allocated in it.
std::optional<std::vector<alloc::Run>> blocks_freed_by(const format::CommitSlot& winner,
                                                       const std::vector<MemberDisk>& members);

}  // namespace mdfs::store
