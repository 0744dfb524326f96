// Commits that continue without disks that failed: what their slots say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/uuid.h"
#include "format/commit.h"

namespace mdfs::store {

// What identifies a commit.
struct CommitName {
  std::uint64_t generation = 0;
  Uuid commit_id;
  std::int64_t time_ns = 0;
};

// The slot of a commit that is begun again without the disks `failed`, a bit each: these are marked as out. `slot` is
// of the commit that was to be written with them, and `parent` of the last durable one. The failed disks are members in
// both. Their space pages stay those of the parent. With no failed disk, the slot of a second attempt.
format::CommitSlot without_disks(format::CommitSlot slot, const format::CommitSlot& parent, std::uint64_t failed,
                                 const CommitName& name);

}  // namespace mdfs::store
