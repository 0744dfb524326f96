// Labels: identify a disk and its volume.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "format/feature_bits.h"
#include "format/kept.h"
#include "format/member.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

// mdfs_label. members.size() is disk_count.
struct Label {
  Features features;  // at the creation of the volume
  Uuid volume_uuid;
  Uuid disk_uuid;
  std::uint16_t disk_index = 0;
  std::uint32_t block_size = MDFS_MIN_BLOCK_SIZE;
  std::uint64_t disk_blocks = 0;
  std::uint64_t zone_blocks = 0;
  std::uint64_t metadata_blocks = 0;
  std::uint64_t room_blocks = 0;   // at least disk_blocks
  std::int64_t created_ns = 0;     // nanoseconds since 1970
  std::uint16_t label_number = 0;  // 0..3: which of the disk's labels
  std::uint32_t membership = 1;    // number of changes of `members`, from 1
  std::string name;                // UTF-8, at most 64 bytes
  std::uint8_t policy = 0;         // MDFS_POLICY_*
  std::vector<Member> members;
  Kept<sizeof(mdfs_label::reserved0)> reserved0{};
  Kept<sizeof(mdfs_label::reserved1)> reserved1{};
  Kept<sizeof(mdfs_label::reserved2)> reserved2{};

  bool operator==(const Label&) const = default;
  // Equal in all that the four labels of one disk share, but for the table of members. A label may be older than a
  // change of members.
  bool same_identity(const Label& other) const;
};

// The smallest possible size of this disk, in blocks: whole label areas, with room for a block of data.
std::uint64_t least_blocks(const Label& label);

// Writes MDFS_SECTOR bytes with their checksum. The label must be one that decode accepts (else abort).
void encode(const Label& label, MutableBytes out);

// Total on any MDFS_SECTOR bytes. Checks, in order: label.size, label.magic (kForeignDisk), label.checksum,
// label.version (kNewerFormat when higher than ours, kOlderFormat when lower), label.volume-uuid, label.disk-uuid,
// label.disk-count, label.disk-index, label.block-size, label.disk-blocks, label.zone-blocks, label.metadata-blocks,
// label.number, label.ring-slots, label.policy, label.membership (at most kMaxMembership), label.members (this disk's
// entry agrees; no disk twice; sizes and weights in range).
Result<Label> decode_label(ConstBytes bytes);

}  // namespace mdfs::format
