// Bringing one sealed state to the disks, in the order that makes it atomic.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "alloc/run.h"
#include "base/aligned_buffer.h"
#include "base/result.h"
#include "device/disk.h"
#include "format/commit.h"
#include "format/layout.h"
#include "format/pointer.h"
#include "store/space_pages.h"

namespace mdfs::store {

// All that one commit writes; independent of the tree and of the space in memory.
struct SealedCommit {
  format::CommitSlot slot;                // state and checksum records are set as it is written
  AlignedBuffer nodes;                    // MDFS_NODE_SIZE each
  std::vector<format::Pointer> pointers;  // of the nodes, in the same order
  std::vector<SectorWrite> sectors;       // space pages
  std::uint64_t sequence = 0;             // of the last transaction that is in it
  // Of the data that were written since the last flush, if they are known: with those of nodes and space pages they
  // may validate the commit, and one flush is enough then. Nothing: two flushes are needed.
  std::optional<std::vector<format::ChecksumRecord>> checksum_records;
};

// A disk that takes part.
struct Participant {
  std::uint16_t index = 0;
  device::Disk* disk = nullptr;
  format::DiskLayout layout;
};

// Nodes, space pages and prepared slots -> flush all -> committed slots -> flush all. If `checksum_records` are there,
// and find room in the slot with those of what is written here, the commit ends with the first flush and the slot has
// all of them; else the slot has none, and its state is committed once committed slots are written. Adjacent nodes
// become one request. After an error the disks hold this commit or its parent, and recovery decides which.
Status write_commit(SealedCommit& sealed, std::span<const Participant> participants, std::uint32_t block_size);

// After an error before any committed slot of it was written (its slot is still prepared): takes its slots away and
// finalizes its parent, if that is not yet, on the disks that still work. Then the next mount needs no disk that has
// failed to know that the commit is none. What goes wrong here is left to recovery.
void abandon_commit(const format::CommitSlot& slot, const std::optional<format::CommitSlot>& parent,
                    std::span<const Participant> participants);

// Committed slots -> flush all: of a commit with checksum records, which from now on do not count any more.
Status finalize_commit(format::CommitSlot slot, std::span<const Participant> participants);

}  // namespace mdfs::store
