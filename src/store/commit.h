// Writes one sealed state to the disks, in the order that makes a commit atomic.
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
#include "store/published_data.h"
#include "store/space_pages.h"

namespace mdfs::store {

// All that one commit writes, independent of the tree and the space in memory.
struct SealedCommit {
  format::CommitSlot slot;                // its state and checksum records are set by write_commit()
  AlignedBuffer nodes;                    // MDFS_NODE_SIZE each
  std::vector<format::Pointer> pointers;  // of the nodes, in the same order
  std::vector<SectorWrite> sectors;       // space pages
  std::uint64_t sequence = 0;             // number of the last transaction in the commit
  // The data that the commit publishes; nothing if there are very many runs.
  std::optional<std::vector<alloc::Run>> published;
  PublishedData published_data;  // the same, however many
  bool loses_data = false;       // of these, a disk that is out may have some alone
  // Records of the data that were written since the last flush, if they are known. Together with the records of nodes
  // and space pages they may validate the commit, which then needs one flush. Nothing: the commit needs two flushes.
  std::optional<std::vector<format::ChecksumRecord>> checksum_records;
};

// A disk that takes part.
struct Participant {
  std::uint16_t index = 0;
  device::Disk* disk = nullptr;
  format::DiskLayout layout;
};

// The disks on which requests failed, a bit each.
struct DiskFaults {
  std::uint64_t writes = 0;
  std::uint64_t flushes = 0;
  std::uint64_t all() const { return writes | flushes; }
};

// Writes nodes, space pages and prepared slots; flushes all disks; writes committed slots; flushes again. A commit
// whose `checksum_records` fit into the slot, with those of the writes made here, ends with the first flush. Its slot
// has all records. Any other commit has a slot without records, whose state becomes committed. Adjacent nodes become
// one request. After an error the disks hold this commit or its parent, and recovery decides between them. Copies on
// disks that are out are not written. Adds to `faults`, unless null.
Status write_commit(SealedCommit& sealed, std::span<const Participant> participants, std::uint32_t block_size,
                    DiskFaults* faults = nullptr);

// Called after an error before any committed slot was written (the slot is still prepared). Removes the slots of the
// commit, and finalizes its parent where necessary, on the disks that still work. The next mount then needs no failed
// disk to reject the commit. Tries everything on every disk, and returns the first error; recovery handles errors.
Status abandon_commit(const format::CommitSlot& slot, const std::optional<format::CommitSlot>& parent,
                      std::span<const Participant> participants, DiskFaults* faults = nullptr);

// Writes the committed slots of a commit with checksum records, and flushes all disks. Its records do not count from
// then on.
Status finalize_commit(format::CommitSlot slot, std::span<const Participant> participants,
                       DiskFaults* faults = nullptr);

Status flush_all(std::span<const Participant> participants, DiskFaults* faults = nullptr);

}  // namespace mdfs::store
