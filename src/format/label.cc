// Labels.
// SPDX-License-Identifier: Apache-2.0
#include "format/label.h"

#include <algorithm>
#include <set>

#include "base/checked.h"
#include "base/crc32c.h"
#include "format/fields.h"
#include "format/layout.h"
#include "format/limits.h"
#include "format/sealed.h"
#include "geometry/geometry.h"

namespace mdfs::format {
namespace {

std::size_t label_member_offset(std::size_t i) { return offsetof(mdfs_label, members) + i * sizeof(mdfs_member); }

Status check_table(const Label& label) {
  MDFS_TRY(check_members(label.members, "label.members"));
  for (const Member& member : label.members)
    MDFS_FORMAT_REQUIRE(member.is_hole() || valid_disk_blocks(label.block_size, member.blocks), "label.members");
  const Member& own = label.members[label.disk_index];
  MDFS_FORMAT_REQUIRE(own.uuid == label.disk_uuid && own.blocks == label.disk_blocks, "label.members");
  return {};
}

Status check_sizes(const Label& label) {
  MDFS_FORMAT_REQUIRE(valid_block_size(label.block_size), "label.block-size");
  MDFS_FORMAT_REQUIRE(valid_disk_blocks(label.block_size, label.disk_blocks), "label.disk-blocks");
  MDFS_FORMAT_REQUIRE(label.zone_blocks >= 1 && label.zone_blocks <= label.disk_blocks, "label.zone-blocks");
  MDFS_FORMAT_REQUIRE(label.metadata_blocks <= label.disk_blocks, "label.metadata-blocks");
  MDFS_FORMAT_REQUIRE(label.room_blocks >= label.disk_blocks && valid_disk_blocks(label.block_size, label.room_blocks),
                      "label.room-blocks");
  const DiskLayout layout(label.block_size, label.disk_blocks, label.metadata_blocks, label.room_blocks);
  MDFS_FORMAT_REQUIRE(layout.consistent(), "label.metadata-blocks");
  return {};
}

Status check(const Label& label) {
  MDFS_FORMAT_REQUIRE(!label.volume_uuid.is_nil(), "label.volume-uuid");
  MDFS_FORMAT_REQUIRE(!label.disk_uuid.is_nil(), "label.disk-uuid");
  MDFS_FORMAT_REQUIRE(!label.members.empty() && label.members.size() <= MDFS_MAX_DISKS, "label.disk-count");
  MDFS_FORMAT_REQUIRE(label.disk_index < label.members.size(), "label.disk-index");
  MDFS_TRY(check_sizes(label));
  MDFS_FORMAT_REQUIRE(label.label_number < MDFS_LABELS_PER_DISK, "label.number");
  MDFS_FORMAT_REQUIRE(label.policy < geometry::kAllocationPolicies, "label.policy");
  MDFS_FORMAT_REQUIRE(label.membership <= kMaxMembership, "label.membership");
  return check_table(label);
}

}  // namespace

bool Label::same_identity(const Label& other) const {
  Label copy = other;
  copy.label_number = label_number;
  copy.members = members;
  copy.membership = membership;
  return *this == copy;
}

std::uint64_t least_blocks(const Label& label) {
  const DiskLayout layout(label.block_size, label.disk_blocks, label.metadata_blocks, label.room_blocks);
  const std::uint64_t unit = MDFS_LABEL_AREA / label.block_size;
  const std::uint64_t parts = layout.metadata_end() + 1 + 2 * unit;
  return align_up(std::max({parts, label.zone_blocks, std::uint64_t{MDFS_MIN_DISK_SIZE} / label.block_size}), unit);
}

void encode(const Label& label, MutableBytes out) {
  MDFS_CHECK(out.size() == MDFS_SECTOR && check(label).ok() && label.name.size() <= sizeof(mdfs_label::name));
  std::fill(out.begin(), out.end(), std::byte{0});
  put_text(out, offsetof(mdfs_label, magic), MDFS_LABEL_MAGIC);
  MDFS_PUT(out, 0, mdfs_label, format_version, MDFS_FORMAT_VERSION);
  MDFS_PUT(out, 0, mdfs_label, features_compat, label.features.compat);
  MDFS_PUT(out, 0, mdfs_label, features_ro_compat, label.features.ro_compat);
  MDFS_PUT(out, 0, mdfs_label, features_incompat, label.features.incompat);
  put_uuid(out, offsetof(mdfs_label, volume_uuid), label.volume_uuid);
  put_uuid(out, offsetof(mdfs_label, disk_uuid), label.disk_uuid);
  MDFS_PUT(out, 0, mdfs_label, disk_index, label.disk_index);
  MDFS_PUT(out, 0, mdfs_label, disk_count, static_cast<std::uint16_t>(label.members.size()));
  MDFS_PUT(out, 0, mdfs_label, block_size, label.block_size);
  MDFS_PUT(out, 0, mdfs_label, disk_blocks, label.disk_blocks);
  MDFS_PUT(out, 0, mdfs_label, zone_blocks, label.zone_blocks);
  MDFS_PUT(out, 0, mdfs_label, metadata_blocks, label.metadata_blocks);
  MDFS_PUT(out, 0, mdfs_label, room_blocks, label.room_blocks);
  MDFS_PUT(out, 0, mdfs_label, created_ns, label.created_ns);
  MDFS_PUT(out, 0, mdfs_label, label_number, label.label_number);
  MDFS_PUT(out, 0, mdfs_label, ring_slots, std::uint16_t{MDFS_RING_SLOTS});
  MDFS_PUT(out, 0, mdfs_label, membership, label.membership);
  put_text(out, offsetof(mdfs_label, name), label.name);
  MDFS_PUT(out, 0, mdfs_label, policy, label.policy);
  for (std::size_t i = 0; i < label.members.size(); ++i) encode(label.members[i], out, label_member_offset(i));
  put_bytes(out, offsetof(mdfs_label, reserved0), label.reserved0);
  put_bytes(out, offsetof(mdfs_label, reserved1), label.reserved1);
  put_bytes(out, offsetof(mdfs_label, reserved2), label.reserved2);
  seal(out, offsetof(mdfs_label, crc32c));
}

Result<Label> decode_label(ConstBytes bytes) {
  MDFS_FORMAT_REQUIRE(bytes.size() == MDFS_SECTOR, "label.size");
  if (!has_text(bytes, offsetof(mdfs_label, magic), MDFS_LABEL_MAGIC)) return {Errc::kForeignDisk, "label.magic"};
  MDFS_FORMAT_REQUIRE(seal_holds(bytes, offsetof(mdfs_label, crc32c)), "label.checksum");
  const auto version = MDFS_GET(bytes, 0, mdfs_label, format_version);
  if (version > MDFS_FORMAT_VERSION) return {Errc::kNewerFormat, "label.version"};
  if (version != MDFS_FORMAT_VERSION) return {Errc::kOlderFormat, "label.version"};

  Label label;
  label.features.compat = MDFS_GET(bytes, 0, mdfs_label, features_compat);
  label.features.ro_compat = MDFS_GET(bytes, 0, mdfs_label, features_ro_compat);
  label.features.incompat = MDFS_GET(bytes, 0, mdfs_label, features_incompat);
  label.volume_uuid = get_uuid(bytes, offsetof(mdfs_label, volume_uuid));
  label.disk_uuid = get_uuid(bytes, offsetof(mdfs_label, disk_uuid));
  label.disk_index = MDFS_GET(bytes, 0, mdfs_label, disk_index);
  label.block_size = MDFS_GET(bytes, 0, mdfs_label, block_size);
  label.disk_blocks = MDFS_GET(bytes, 0, mdfs_label, disk_blocks);
  label.zone_blocks = MDFS_GET(bytes, 0, mdfs_label, zone_blocks);
  label.metadata_blocks = MDFS_GET(bytes, 0, mdfs_label, metadata_blocks);
  label.room_blocks = MDFS_GET(bytes, 0, mdfs_label, room_blocks);
  label.created_ns = MDFS_GET(bytes, 0, mdfs_label, created_ns);
  label.label_number = MDFS_GET(bytes, 0, mdfs_label, label_number);
  label.membership = MDFS_GET(bytes, 0, mdfs_label, membership);
  MDFS_FORMAT_REQUIRE(is_zero_padded(bytes, offsetof(mdfs_label, name), sizeof(mdfs_label::name)), "label.name");
  label.name = get_padded_text(bytes, offsetof(mdfs_label, name), sizeof(mdfs_label::name));
  label.policy = MDFS_GET(bytes, 0, mdfs_label, policy);
  const auto count = MDFS_GET(bytes, 0, mdfs_label, disk_count);
  MDFS_FORMAT_REQUIRE(count >= 1 && count <= MDFS_MAX_DISKS, "label.disk-count");
  MDFS_FORMAT_REQUIRE(MDFS_GET(bytes, 0, mdfs_label, ring_slots) == MDFS_RING_SLOTS, "label.ring-slots");
  for (std::size_t i = 0; i < count; ++i) label.members.push_back(decode_member(bytes, label_member_offset(i)));
  get_bytes(bytes, offsetof(mdfs_label, reserved0), label.reserved0);
  get_bytes(bytes, offsetof(mdfs_label, reserved1), label.reserved1);
  get_bytes(bytes, offsetof(mdfs_label, reserved2), label.reserved2);
  MDFS_TRY(check(label));
  return label;
}

}  // namespace mdfs::format
