// Validation of commits: by a committed slot, by the commit that followed, or by the commit's own checksum records.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/disk.h"
#include "format/commit.h"
#include "store/commit_pieces.h"
#include "store/labels.h"

namespace mdfs::store {

// A disk with a label, and the contents of its label areas.
struct Candidate {
  std::unique_ptr<device::Disk> disk;
  DiskLabels labels;
  bool current = false;  // set when the winner is known: has_commit()
};

// A commit with checksum records that counts as incomplete, because a disk that took part contradicts it. A power cut
// explains this, and then no caller learned that the commit was durable. An older copy in the place of the disk, or a
// bad sector, explains it as well, and then the commit was durable. Nothing on the disks tells these cases apart.
struct DroppedCommit {
  format::CommitSlot slot;
  std::string disk;  // name of the disk
  std::string why;   // "the disk holds neither its slot nor its blocks"
};

// The newest commit that is not known to be incomplete.
struct Winner {
  format::CommitSlot slot;           // committed if such a slot was found, else prepared
  std::uint64_t highest_generation;  // found in any slot, also a prepared one
  // Indexes of participants that are absent, cannot be read, or hold an older state than they should. Empty unless the
  // commit relies on its checksum records alone; these disks then decide whether it is complete.
  std::vector<std::uint16_t> awaited;
  CommitDamage damage;                 // of what the commit wrote; all of it has another good copy
  std::vector<DroppedCommit> dropped;  // of higher generations
};

// Finds the winning commit. A commit with a committed slot on any disk is valid. A commit with checksum records is
// valid if its successor is found, because a successor begins after the flush of its parent. The checksum records of a
// commit validate it under these conditions:
// - every participating disk is present, and holds the commit's slot, or its parent's slot, or matches a record;
// - no participating disk has later commits without it;
// - every record matches. A mismatch on a disk that holds the slot is excused if the record covers only nodes and
//   pieces of data that have another good copy.
// The valid commit of the highest generation wins, or a newer one that is incomplete on no present disk (`awaited`).
// Reads at most the blocks of the records, the nodes that they cover, and what commit_pieces.h reads. Errors: kFork
// (two of one generation), kCorrupt (none). With `generation` that commit wins instead, if it is among them.
Result<Winner> find_winner(const std::vector<Candidate>& candidates, std::optional<std::uint64_t> generation = {});

// The valid commit of the highest generation below the newest: a rollback without a number takes it. kNotFound if there
// is none.
Result<std::uint64_t> commit_before_newest(const std::vector<Candidate>& candidates);

// A commit in the rings of the disks.
struct FoundCommit {
  format::CommitSlot slot;  // committed if any such slot was found
  unsigned disks = 0;       // that hold the slot
  bool valid = false;       // else it was begun and not completed, or not on all disks
};
// The newest first.
std::vector<FoundCommit> list_commits(const std::vector<Candidate>& candidates);

// The generation of the disk's newest commit if the disk was written apart from the winner (FORMAT.md 4.3, step 2);
// else nothing. `current`: bits of the indexes of disks that have the winner.
std::optional<std::uint64_t> diverged(const std::vector<Candidate>& candidates, const Candidate& candidate,
                                      const format::CommitSlot& winner, std::uint64_t current);

// True if the disk holds all that the commit wrote to it: its slot, or data that match all records of this disk. For a
// disk without records: the parent's slot.
bool has_commit(const Candidate& candidate, const format::CommitSlot& slot);

}  // namespace mdfs::store
