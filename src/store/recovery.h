// Recovery: finds the newest valid commit, and the disks that have it.
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
#include "store/commit_pieces.h"
#include "store/labels.h"
#include "store/members.h"
#include "store/validation.h"

namespace mdfs::store {

// One member of the volume, in the order of the member table. An unused index has the state kNone.
struct MemberDisk {
  std::unique_ptr<device::Disk> disk;  // never null: a missing one answers with kMissingDisk
  DiskState state = DiskState::kMissing;
  format::Member member;
  std::optional<format::Label> label;  // absent if the disk is; has the size of the disk in the winner
  DiskLabels labels;
  // The places of the labels at the disk's end while a change of its size is unfinished; else absent.
  std::optional<format::DiskLayout> labels_at;
  std::string error;  // the reason why it is not healthy

  bool healthy() const { return state == DiskState::kHealthy; }
  bool is_readable() const { return healthy() || state == DiskState::kStale || state == DiskState::kOut; }
};

struct Recovered {
  format::Label label;  // of one current disk; its shared fields hold for all
  std::vector<MemberDisk> members;
  format::CommitSlot winner;
  std::uint64_t highest_generation = 0;  // found in any slot, also a prepared one
  // Disks that decide whether the winner is complete (validation.h). Nothing may be built on the winner without them,
  // unless the administrator gives these disks up.
  std::vector<std::uint16_t> awaited;
  // Later commits that count as incomplete. Recovery logs each, with the way to read it.
  std::vector<DroppedCommit> dropped;
  // An absent disk takes part in a later commit that was begun on the present disks, and may hold it as committed. The
  // present disks are then current only as long as they keep their parts of that commit.
  bool may_be_older = false;
  CommitDamage damage;            // of the winner, to be repaired before it is finalized
  std::optional<Error> unusable;  // the error of the newest slot, where an older commit was requested
  format::Features features;      // of the winner and of all labels

  std::size_t healthy() const;
  std::size_t disks() const;    // without unused indexes
  std::size_t counted() const;  // disks that are not out
  bool majority() const;        // of the counted disks
  bool features_read_only() const { return (features.ro_compat & ~MDFS_RO_COMPAT_KNOWN) != 0; }
  // True if an absent disk has the winner, or perhaps a later commit. The first write may make disks stale, even a
  // write of recovery. Recovery therefore writes nothing until a user writes.
  bool holds_still() const;
  // "generation 7 ... without disk 2 (UUID)": the disks to attach. `awaited` must not be empty.
  std::string awaited_text() const;
};

// Recovers a volume from its disks, in any order. validation.h chooses the winning commit, which also names the
// members. A disk is current if it has the winner: its slot, or all that the winner wrote to it. Any other member is
// stale; it counts as missing and is only read. Recovery leaves other disks alone and logs them, also a disk whose
// adding was cut off. Writes nothing.
// Errors: kInvalidArgument (no disks), kIo (no label of any disk can be read), kForeignDisk (no label, another volume,
// one disk twice, no member at all), kNewerFormat (also in the newest slot), kFork (two different valid commits of one
// generation, or a disk that was ever written apart from the others), kCorrupt (no valid commit). With `rollback` an
// older commit wins: that of the given generation, or for 0 the one before the newest. Slots that this version cannot
// use are then noted in `unusable` instead of an error. kNotFound: there is no such commit.
Result<Recovered> recover(std::vector<std::unique_ptr<device::Disk>> disks,
                          std::optional<std::uint64_t> rollback = std::nullopt);

// The commits on the disks, the newest first. Writes nothing. Errors about disks are those of recover().
Result<std::vector<FoundCommit>> find_commits(std::vector<std::unique_ptr<device::Disk>> disks);

// Flushes every healthy disk.
Status flush_current(const std::vector<MemberDisk>& members);

// The writes that complete recovery.
struct RecoveryWrites {
  std::vector<MemberDisk>& members;
  const format::Label& label;
  const format::CommitSlot& winner;
  const CommitDamage& damage;
};

// Flushes all healthy disks first, because their caches alone may hold what was read from them. Then writes the
// winner's committed slot to all rings of all current disks. Wipes slots of later commits there, which are not valid.
// Repairs labels that are damaged or have another table of members. To be called before the first write after recovery.
Status make_present(const RecoveryWrites& recovery);
inline Status make_present(Recovered& recovered) {
  return make_present({recovered.members, recovered.label, recovered.winner, recovered.damage});
}

}  // namespace mdfs::store
