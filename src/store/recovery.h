// Finding the newest valid commit, and which disks have it.
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
#include "format/label.h"
#include "store/commit_nodes.h"
#include "store/labels.h"
#include "store/members.h"
#include "store/validation.h"

namespace mdfs::store {

// One member of the volume, in the order of the member table. A hole has the state kNone.
struct MemberDisk {
  std::unique_ptr<device::Disk> disk;  // never null: a missing one answers with kMissingDisk
  DiskState state = DiskState::kMissing;
  format::Member member;
  std::optional<format::Label> label;  // absent if the disk is; with the size that the winner gives the disk
  DiskLabels labels;
  // Where the labels at its end lie while a change of its size is not finished; else absent.
  std::optional<format::DiskLayout> labels_at;
  std::string error;  // why it is not healthy

  bool healthy() const { return state == DiskState::kHealthy; }
  bool is_readable() const { return healthy() || state == DiskState::kStale; }
};

struct Recovered {
  format::Label label;  // of one current disk: what all share
  std::vector<MemberDisk> members;
  format::CommitSlot winner;
  std::uint64_t highest_generation = 0;  // seen anywhere, prepared ones included
  // Disks without which nobody knows that the winner is complete (validation.h): nothing may be built on it, unless
  // the administrator gives these disks up.
  std::vector<std::uint16_t> awaited;
  // A disk that is not here takes part in a later commit, which was begun here. It may hold that commit committed, and
  // then the disks that are here are current only as long as they keep what they have of it.
  bool may_be_older = false;
  std::vector<BadNodeCopy> bad_copies;  // of the winner's nodes, to be repaired before it is finalized
  std::optional<Error> unusable;        // the newest slot, where an older commit was asked for
  format::Features features;            // of the winner and of all labels

  std::size_t healthy() const;
  std::size_t disks() const;  // without holes
  bool majority() const { return 2 * healthy() > disks(); }
  bool features_read_only() const { return (features.ro_compat & ~MDFS_RO_COMPAT_KNOWN) != 0; }
  // A disk is absent that has the winner or perhaps a later commit. The first write may make disks stale, be it only
  // one of recovery, so there is to be none before somebody writes.
  bool holds_still() const;
  // "generation 7 ... without disk 2 (UUID)": which disks to attach. `awaited` is not empty.
  std::string awaited_text() const;
};

// Disks in any order. The commit that wins is that of validation.h; a disk is current if it has the winner (its slot,
// or all that the winner wrote to it), else it is stale: it counts as missing, and is only read from. Who the members
// are stands in the winner. A disk that is none (any more, or not yet) is left alone, which the log says; so is one
// that was being added when the power was cut. Writes nothing. Errors: kInvalidArgument (no disks), kForeignDisk (no
// label, another volume, one disk twice, no member at all), kNewerFormat (also: in the newest slot), kFork (two
// different valid commits of one generation, or a disk that was written apart from the others, however long ago),
// kCorrupt (no valid commit).
//
// With `rollback` an older commit wins: that of a generation, or of 0 the one before the newest. Slots that this
// version cannot use are then no error, but noted in `unusable`. kNotFound: there is no such commit.
Result<Recovered> recover(std::vector<std::unique_ptr<device::Disk>> disks,
                          std::optional<std::uint64_t> rollback = std::nullopt);

// The commits that the disks hold, the newest first. Writes nothing; errors as those of recover() about disks.
Result<std::vector<FoundCommit>> find_commits(std::vector<std::unique_ptr<device::Disk>> disks);

// Flushes every healthy disk.
Status flush_current(const std::vector<MemberDisk>& members);

// What recovery has to write, and where.
struct RecoveryWrites {
  std::vector<MemberDisk>& members;
  const format::Label& label;
  const format::CommitSlot& winner;
  const std::vector<BadNodeCopy>& bad_copies;
};

// Flushes all healthy disks, since what was read from them may be in their caches alone. Then makes the winner's
// committed slot present in all rings of all current disks, wipes slots of later commits there, which are not valid,
// and repairs labels that are damaged or whose table of members is another one. To be done before the first write after
// recovery.
Status make_present(const RecoveryWrites& recovery);
inline Status make_present(Recovered& recovered) {
  return make_present({recovered.members, recovered.label, recovered.winner, recovered.bad_copies});
}

}  // namespace mdfs::store
