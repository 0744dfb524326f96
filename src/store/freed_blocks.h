// Which blocks a commit freed, told from the space pages of that commit and of its parent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "alloc/run.h"
#include "format/commit.h"
#include "store/recovery.h"

namespace mdfs::store {

// Pages that differ, on all disks: reading them takes a second on a disk that reads 100 MiB/s.
inline constexpr std::uint64_t kComparedPagesLimit = 12800;

// Runs in use in the parent of `winner` and free in `winner`, on healthy disks; none crosses a bitmap page or the end
// of the metadata region. Only pages that the two commits do not share are read. Nothing if a page of the parent cannot
// be read, as when a later commit that was begun has overwritten it, if the parent's slot is lost, if a disk had
// another size, or if more pages differ than the limit. A page of the winner that cannot be read is passed over:
// nothing is given out of it.
std::optional<std::vector<alloc::Run>> blocks_freed_by(const format::CommitSlot& winner,
                                                       const std::vector<MemberDisk>& members);

}  // namespace mdfs::store
