// One disk of a volume, as labels and commits name it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

// mdfs_member. The index in the table is that of addresses: a disk that leaves leaves a hole, and no disk is ever
// given another number.
struct Member {
  Uuid uuid;
  std::uint64_t blocks = 0;
  std::uint16_t weight = 1;  // 0: tree nodes alone
  std::uint16_t flags = 0;   // MDFS_MEMBER_*
  std::uint32_t marks = 0;   // MDFS_MARK_*, and bits of newer versions

  bool operator==(const Member&) const = default;
  bool is_hole() const { return (flags & MDFS_MEMBER_HOLE) != 0; }
  bool is_draining() const { return (flags & MDFS_MEMBER_DRAINING) != 0; }
  bool takes_data() const { return weight > 0; }
  bool is_out() const { return (marks & MDFS_MARK_OUT) != 0; }
  static Member hole() { return {{}, 0, 0, MDFS_MEMBER_HOLE}; }
};

inline constexpr std::uint16_t kKnownMemberFlags = MDFS_MEMBER_HOLE | MDFS_MEMBER_DRAINING;

// Disks in the table that are no holes.
std::size_t count_disks(const std::vector<Member>& members);
// Of a set of disks: a bit for each index.
constexpr std::uint64_t disk_bit(unsigned disk) { return std::uint64_t{1} << disk; }
// Disks that count for a majority: a bit for each that is no hole and not out.
std::uint64_t counted_disks(const std::vector<Member>& members);

// Both work at byte `base` and need sizeof(mdfs_member) bytes there (else abort). decode_member checks no value.
void encode(const Member& member, MutableBytes out, std::size_t base);
Member decode_member(ConstBytes bytes, std::size_t base);

// Checks a table: a disk at least, no disk twice, known flags, sizes from 1 that addresses reach, one disk at least
// that takes data, holes that are zero. The error carries the name `check`. An unknown flag is kNewerFormat, all else
// kCorrupt.
Status check_members(const std::vector<Member>& members, const char* check);

}  // namespace mdfs::format
