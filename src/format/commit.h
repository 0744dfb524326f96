// Commit slots: the atomic step from one on-disk state to the next.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "format/feature_bits.h"
#include "format/kept.h"
#include "format/member.h"
#include "format/pointer.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

// The bytes of a root that this version does not use.
struct RootReserve {
  Kept<sizeof(mdfs_root::reserved0)> first{};
  Kept<sizeof(mdfs_root::reserved1)> second{};
  bool operator==(const RootReserve&) const = default;
};

// mdfs_root: where a tree of the commit begins.
struct Root {
  std::uint32_t kind = MDFS_ROOT_NONE;
  std::uint16_t level = 0;  // of the root node; 0: a leaf
  std::uint64_t nodes = 0;  // in the tree
  std::uint64_t id = 0;     // of what the tree stands for; 0: the main tree
  Pointer pointer;
  RootReserve reserve;  // as in the previous commit
  bool operator==(const Root&) const = default;
};

// mdfs_space_top and mdfs_space_entry: the valid place of a space page, its checksum and its free blocks.
struct SpaceEntry {
  std::uint32_t crc32c = 0;
  std::uint32_t place = 0;  // 0 or 1
  std::uint64_t free_blocks = 0;
  bool operator==(const SpaceEntry&) const = default;
};

// mdfs_checksum_record: a write on which the commit relies, and that no flush had followed.
struct ChecksumRecord {
  std::uint16_t disk = 0;
  std::uint16_t sectors = 0;  // of MDFS_SECTOR bytes, 1..256
  std::uint32_t crc32c = 0;   // of these bytes
  std::uint64_t sector = 0;   // the first
  std::uint64_t offset() const { return sector * MDFS_SECTOR; }
  std::uint64_t bytes() const { return std::uint64_t{sectors} * MDFS_SECTOR; }
  bool operator==(const ChecksumRecord&) const = default;
};

// mdfs_member_state: the newest commit of a member; none for a hole.
struct MemberState {
  Uuid commit_id;
  std::uint64_t generation = 0;
  std::uint64_t out_ns = 0;  // time of the commit that marked the member out; 0: it is not out
  bool operator==(const MemberState&) const = default;
};

// The bytes of a slot that this version does not use: among its counters, before its roots, and at its end.
struct CommitReserve {
  static constexpr std::size_t kBegin = offsetof(mdfs_commit_slot, writer);
  Kept<sizeof(mdfs_commit_slot::reserved0)> counters{};
  Kept<offsetof(mdfs_commit_slot, roots) - kBegin> middle{};  // writer, keys, intent log, reserved1
  Kept<sizeof(mdfs_commit_slot::reserved2)> end{};
  bool operator==(const CommitReserve&) const = default;
};

// mdfs_commit_slot. space.size() is disk_count.
struct CommitSlot {
  std::uint32_t state = MDFS_SLOT_PREPARED;
  Uuid volume_uuid;
  Uuid commit_id;
  Uuid parent_id;
  std::uint64_t generation = 0;
  std::int64_t time_ns = 0;
  std::uint64_t participants = 0;  // bit i: disk i
  std::uint64_t next_object = MDFS_OBJECT_FIRST;
  std::uint64_t objects = 0;
  std::uint32_t flags = 0;
  std::vector<Root> roots;
  std::vector<SpaceEntry> space;    // of each disk; empty ones of holes
  std::uint32_t membership = 1;     // counts changes of `members`
  std::vector<Member> members;      // as many as `space`
  std::vector<MemberState> states;  // likewise
  Features features;
  // If there are any, they may validate the commit without a committed slot (FORMAT.md 4.2, 4.3).
  std::vector<ChecksumRecord> checksum_records;
  CommitReserve reserve;  // as in the previous commit

  bool operator==(const CommitSlot&) const = default;
  // The root of this kind; null if there is none. Borrowed from the slot.
  const Root* root(std::uint32_t kind) const;
};

// The states of the members of `slot` with the parent `parent` (null for the first): for participants this commit,
// for others the state in the parent of the same disk.
std::vector<MemberState> member_states(const CommitSlot& slot, const CommitSlot* parent);

// Writes MDFS_SLOT_SIZE bytes with their checksum. The slot must be one that decode accepts (else abort).
void encode(const CommitSlot& slot, MutableBytes out);

// Total on any MDFS_SLOT_SIZE bytes. Checks, in order: commit.size, commit.magic, commit.checksum, commit.volume-uuid
// (of another volume), commit.state, commit.commit-id, commit.generation (1..kMaxGeneration), commit.disk-count,
// commit.participants, commit.next-object, commit.objects (bounds: limits.h), commit.root-count, commit.roots (kinds
// known once each, the main root present, one node at least and kMaxNodes at most, born no later than the commit),
// commit.space, commit.checksum_records (at most MDFS_MAX_CHECKSUM_RECORDS, of at most 1 MiB, on disks that take part),
// commit.membership, commit.members (no hole takes part), commit.member-states (no younger than the commit; none of a
// hole).
// Values of a newer version are kNewerFormat: an unknown state, flag, incompatible feature, kind of root, type
// of checksum or flag of a member.
Result<CommitSlot> decode_commit_slot(ConstBytes bytes, const Uuid& volume_uuid);

// The generation of a slot with the right size, magic, checksum and volume, whatever the other fields: a program wrote
// that slot, and an older commit must not replace it silently.
std::optional<std::uint64_t> sealed_slot_generation(ConstBytes bytes, const Uuid& volume_uuid);

}  // namespace mdfs::format
