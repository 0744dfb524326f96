// Which commit is valid: by a committed slot, by the commit that came after it, or by its own checksum records.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "device/disk.h"
#include "format/commit.h"
#include "store/commit_nodes.h"
#include "store/labels.h"

namespace mdfs::store {

// A disk that was given, with what its label areas hold; it has a label.
struct Candidate {
  std::unique_ptr<device::Disk> disk;
  DiskLabels labels;
  bool current = false;  // has the winner (has_commit()), once that is known
};

// The newest commit that is not known to be incomplete.
struct Winner {
  format::CommitSlot slot;           // committed if such a slot was found, else prepared
  std::uint64_t highest_generation;  // seen anywhere, prepared ones included
  // Indexes of participants that are absent, cannot be read, or hold an older state than they must. Empty unless the
  // checksum records alone speak for the commit: then it is complete only if it is complete on these disks, too.
  std::vector<std::uint16_t> awaited;
  std::vector<BadNodeCopy> bad_copies;  // of nodes that the commit wrote; another copy of each is good
};

// A commit with a committed slot anywhere is valid, as is one with checksum records whose successor is found: a
// successor is begun once its parent has been flushed. The checksum records of a commit validate it if
// - every disk that takes part in it is here, and holds its slot, or that of its parent, or matches a record;
// - no disk that takes part in it has gone on without it;
// - every record matches. One that does not is excused if it covers nothing but nodes of which another copy is good,
//   on a disk that holds the slot.
// The valid commit of the highest generation wins, or a newer one that is incomplete on no disk that is here
// (`awaited`). Reads at most what the records say and the nodes that they cover. Errors: kFork (two of one
// generation), kCorrupt (none).
// With `generation` that commit wins instead, if it is among them.
Result<Winner> find_winner(const std::vector<Candidate>& candidates, std::optional<std::uint64_t> generation = {});

// The valid commit of the highest generation below that of the newest: what a rollback without a number means.
// kNotFound if there is none.
Result<std::uint64_t> commit_before_newest(const std::vector<Candidate>& candidates);

// A commit that the rings of the disks hold.
struct FoundCommit {
  format::CommitSlot slot;  // committed if such a slot was found
  unsigned disks = 0;       // that hold it
  bool valid = false;       // else it was begun and not completed, or not on all disks
};
// The newest first.
std::vector<FoundCommit> list_commits(const std::vector<Candidate>& candidates);

// Was the disk written apart from the winner (FORMAT.md 4.3, step 2)? Then it gives the generation of the disk's newest
// commit. `current`: bits of the indexes of disks that have the winner.
std::optional<std::uint64_t> diverged(const std::vector<Candidate>& candidates, const Candidate& candidate,
                                      const format::CommitSlot& winner, std::uint64_t current);

// The disk holds all that the commit wrote to it: its slot, or data that match all records of this disk. Where there
// are none, the parent's slot.
bool has_commit(const Candidate& candidate, const format::CommitSlot& slot);

}  // namespace mdfs::store
