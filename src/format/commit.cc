// Commit slots.
// SPDX-License-Identifier: Apache-2.0
#include "format/commit.h"

#include "format/fields.h"
#include "format/limits.h"
#include "format/node.h"
#include "format/sealed.h"

namespace mdfs::format {
namespace {

std::size_t root_offset(std::size_t i) { return offsetof(mdfs_commit_slot, roots) + i * sizeof(mdfs_root); }
std::size_t space_offset(std::size_t i) { return offsetof(mdfs_commit_slot, space) + i * sizeof(mdfs_space_top); }

std::size_t member_offset(std::size_t i) { return offsetof(mdfs_commit_slot, members) + i * sizeof(mdfs_member); }

std::size_t state_offset(std::size_t i) {
  return offsetof(mdfs_commit_slot, member_states) + i * sizeof(mdfs_member_state);
}

std::size_t checksum_record_offset(std::size_t i) {
  return offsetof(mdfs_commit_slot, checksum_records) + i * sizeof(mdfs_checksum_record);
}

Status check_checksum_records(const CommitSlot& slot) {
  MDFS_FORMAT_REQUIRE(slot.checksum_records.size() <= MDFS_MAX_CHECKSUM_RECORDS, "commit.checksum_records");
  for (const ChecksumRecord& checksum_record : slot.checksum_records) {
    MDFS_FORMAT_REQUIRE(
        checksum_record.disk < slot.space.size() && ((slot.participants >> checksum_record.disk) & 1) != 0,
        "commit.checksum_records");
    MDFS_FORMAT_REQUIRE(checksum_record.sectors >= 1 && checksum_record.sectors <= MDFS_MAX_RECORDED_SECTORS,
                        "commit.checksum_records");
    MDFS_FORMAT_REQUIRE(checksum_record.sector <= Address::kMaxBlock, "commit.checksum_records");
  }
  return {};
}

Status check_table(const CommitSlot& slot) {
  MDFS_FORMAT_REQUIRE(slot.members.size() == slot.space.size(), "commit.members");
  MDFS_FORMAT_REQUIRE(slot.membership >= 1 && slot.membership <= kMaxMembership, "commit.membership");
  MDFS_TRY(check_members(slot.members, "commit.members"));
  MDFS_FORMAT_REQUIRE((slot.participants & ~counted_disks(slot.members)) == 0, "commit.participants");
  return {};
}

Status check_states(const CommitSlot& slot) {
  MDFS_FORMAT_REQUIRE(slot.states.size() == slot.members.size(), "commit.member-states");
  for (std::size_t i = 0; i < slot.states.size(); ++i) {
    const MemberState& state = slot.states[i];
    MDFS_FORMAT_REQUIRE(state.generation <= slot.generation, "commit.member-states");
    MDFS_FORMAT_REQUIRE(state.commit_id.is_nil() == (state.generation == 0), "commit.member-states");
    MDFS_FORMAT_REQUIRE(!slot.members[i].is_hole() || state.generation == 0, "commit.member-states");
  }
  return {};
}

// What only a newer version can have written.
Status check_known(const CommitSlot& slot) {
  if (slot.state != MDFS_SLOT_PREPARED && slot.state != MDFS_SLOT_COMMITTED)
    return {Errc::kNewerFormat, "commit.state"};
  if ((slot.flags & ~MDFS_COMMIT_DEGRADED) != 0) return {Errc::kNewerFormat, "commit.flags"};
  if (slot.features.unknown_incompat() != 0) return {Errc::kNewerFormat, "commit.features-incompat"};
  for (const Root& root : slot.roots)
    if (root.kind != MDFS_ROOT_MAIN && root.kind != MDFS_ROOT_NONE) return {Errc::kNewerFormat, "commit.roots"};
  return {};
}

Status check_roots(const CommitSlot& slot) {
  MDFS_FORMAT_REQUIRE(!slot.roots.empty() && slot.roots.size() <= MDFS_MAX_ROOTS, "commit.root-count");
  for (std::size_t i = 0; i < slot.roots.size(); ++i) {
    const Root& root = slot.roots[i];
    MDFS_FORMAT_REQUIRE(root.kind != MDFS_ROOT_NONE && slot.root(root.kind) == &root, "commit.roots");
    MDFS_FORMAT_REQUIRE(root.level <= kMaxTreeLevel && root.nodes >= 1 && root.nodes <= kMaxNodes, "commit.roots");
    MDFS_FORMAT_REQUIRE(!root.pointer.is_null() && root.pointer.length == MDFS_NODE_SIZE, "commit.roots");
    MDFS_FORMAT_REQUIRE(root.pointer.birth <= slot.generation, "commit.roots");
  }
  MDFS_FORMAT_REQUIRE(slot.root(MDFS_ROOT_MAIN) != nullptr, "commit.roots");
  return {};
}

Status check(const CommitSlot& slot) {
  MDFS_FORMAT_REQUIRE(slot.state == MDFS_SLOT_PREPARED || slot.state == MDFS_SLOT_COMMITTED, "commit.state");
  MDFS_FORMAT_REQUIRE(!slot.commit_id.is_nil() && slot.commit_id != slot.parent_id, "commit.commit-id");
  MDFS_FORMAT_REQUIRE(slot.generation >= 1 && slot.generation <= kMaxGeneration, "commit.generation");
  MDFS_FORMAT_REQUIRE(!slot.space.empty() && slot.space.size() <= MDFS_MAX_DISKS, "commit.disk-count");
  const std::uint64_t all = slot.space.size() == 64 ? UINT64_MAX : (std::uint64_t{1} << slot.space.size()) - 1;
  MDFS_FORMAT_REQUIRE(slot.participants != 0 && (slot.participants & ~all) == 0, "commit.participants");
  MDFS_FORMAT_REQUIRE(slot.next_object >= MDFS_OBJECT_FIRST && slot.next_object <= kMaxObject, "commit.next-object");
  MDFS_FORMAT_REQUIRE(slot.objects <= kMaxObject, "commit.objects");
  for (const SpaceEntry& top : slot.space)
    MDFS_FORMAT_REQUIRE(top.place < 2 && top.free_blocks <= Address::kMaxBlock, "commit.space");
  MDFS_TRY(check_roots(slot));
  MDFS_TRY(check_checksum_records(slot));
  MDFS_TRY(check_table(slot));
  return check_states(slot);
}

Result<Root> decode_root(ConstBytes bytes, std::size_t base) {
  Root root;
  root.kind = MDFS_GET(bytes, base, mdfs_root, kind);
  root.level = MDFS_GET(bytes, base, mdfs_root, level);
  root.nodes = MDFS_GET(bytes, base, mdfs_root, nodes);
  root.id = MDFS_GET(bytes, base, mdfs_root, id);
  get_bytes(bytes, base + offsetof(mdfs_root, reserved0), root.reserve.first);
  get_bytes(bytes, base + offsetof(mdfs_root, reserved1), root.reserve.second);
  auto pointer = decode_pointer(bytes, base + offsetof(mdfs_root, pointer));
  if (!pointer.ok()) return {pointer.error().code, "commit.roots"};
  root.pointer = *pointer;
  return root;
}

void encode_state(const MemberState& state, MutableBytes out, std::size_t base) {
  put_uuid(out, base + offsetof(mdfs_member_state, commit_id), state.commit_id);
  MDFS_PUT(out, base, mdfs_member_state, generation, state.generation);
  MDFS_PUT(out, base, mdfs_member_state, out_ns, state.out_ns);
}

MemberState decode_state(ConstBytes bytes, std::size_t base) {
  return {get_uuid(bytes, base + offsetof(mdfs_member_state, commit_id)),
          MDFS_GET(bytes, base, mdfs_member_state, generation), MDFS_GET(bytes, base, mdfs_member_state, out_ns)};
}

}  // namespace

std::vector<MemberState> member_states(const CommitSlot& slot, const CommitSlot* parent) {
  std::vector<MemberState> states(slot.members.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Uuid& uuid = slot.members[i].uuid;
    if (parent != nullptr && i < parent->members.size() && parent->members[i].uuid == uuid)
      states[i] = parent->states[i];
    if (((slot.participants >> i) & 1) == 0) continue;
    states[i].commit_id = slot.commit_id;
    states[i].generation = slot.generation;
  }
  return states;
}

const Root* CommitSlot::root(std::uint32_t kind) const {
  for (const Root& candidate : roots)
    if (candidate.kind == kind) return &candidate;
  return nullptr;
}

void encode(const CommitSlot& slot, MutableBytes out) {
  MDFS_CHECK(out.size() == MDFS_SLOT_SIZE && check_known(slot).ok() && check(slot).ok());
  std::fill(out.begin(), out.end(), std::byte{0});
  put_text(out, offsetof(mdfs_commit_slot, magic), MDFS_COMMIT_MAGIC);
  MDFS_PUT(out, 0, mdfs_commit_slot, state, slot.state);
  put_uuid(out, offsetof(mdfs_commit_slot, volume_uuid), slot.volume_uuid);
  put_uuid(out, offsetof(mdfs_commit_slot, commit_id), slot.commit_id);
  put_uuid(out, offsetof(mdfs_commit_slot, parent_id), slot.parent_id);
  MDFS_PUT(out, 0, mdfs_commit_slot, generation, slot.generation);
  MDFS_PUT(out, 0, mdfs_commit_slot, time_ns, slot.time_ns);
  MDFS_PUT(out, 0, mdfs_commit_slot, participants, slot.participants);
  MDFS_PUT(out, 0, mdfs_commit_slot, next_object, slot.next_object);
  MDFS_PUT(out, 0, mdfs_commit_slot, objects, slot.objects);
  MDFS_PUT(out, 0, mdfs_commit_slot, flags, slot.flags);
  MDFS_PUT(out, 0, mdfs_commit_slot, disk_count, static_cast<std::uint16_t>(slot.space.size()));
  MDFS_PUT(out, 0, mdfs_commit_slot, root_count, static_cast<std::uint16_t>(slot.roots.size()));
  for (std::size_t i = 0; i < slot.roots.size(); ++i) {
    const std::size_t base = root_offset(i);
    MDFS_PUT(out, base, mdfs_root, kind, slot.roots[i].kind);
    MDFS_PUT(out, base, mdfs_root, level, slot.roots[i].level);
    MDFS_PUT(out, base, mdfs_root, nodes, slot.roots[i].nodes);
    MDFS_PUT(out, base, mdfs_root, id, slot.roots[i].id);
    put_bytes(out, base + offsetof(mdfs_root, reserved0), slot.roots[i].reserve.first);
    put_bytes(out, base + offsetof(mdfs_root, reserved1), slot.roots[i].reserve.second);
    encode(slot.roots[i].pointer, out, base + offsetof(mdfs_root, pointer));
  }
  for (std::size_t i = 0; i < slot.space.size(); ++i) {
    const std::size_t base = space_offset(i);
    MDFS_PUT(out, base, mdfs_space_top, crc32c, slot.space[i].crc32c);
    MDFS_PUT(out, base, mdfs_space_top, slot, slot.space[i].place);
    MDFS_PUT(out, base, mdfs_space_top, free_blocks, slot.space[i].free_blocks);
  }
  MDFS_PUT(out, 0, mdfs_commit_slot, membership, slot.membership);
  for (std::size_t i = 0; i < slot.members.size(); ++i) encode(slot.members[i], out, member_offset(i));
  for (std::size_t i = 0; i < slot.states.size(); ++i) encode_state(slot.states[i], out, state_offset(i));
  MDFS_PUT(out, 0, mdfs_commit_slot, features_compat, slot.features.compat);
  MDFS_PUT(out, 0, mdfs_commit_slot, features_ro_compat, slot.features.ro_compat);
  MDFS_PUT(out, 0, mdfs_commit_slot, features_incompat, slot.features.incompat);
  put_bytes(out, offsetof(mdfs_commit_slot, reserved0), slot.reserve.counters);
  put_bytes(out, CommitReserve::kBegin, slot.reserve.middle);
  put_bytes(out, offsetof(mdfs_commit_slot, reserved2), slot.reserve.end);
  MDFS_PUT(out, 0, mdfs_commit_slot, checksum_record_count, static_cast<std::uint16_t>(slot.checksum_records.size()));
  for (std::size_t i = 0; i < slot.checksum_records.size(); ++i) {
    const std::size_t base = checksum_record_offset(i);
    MDFS_PUT(out, base, mdfs_checksum_record, disk, slot.checksum_records[i].disk);
    MDFS_PUT(out, base, mdfs_checksum_record, sectors, slot.checksum_records[i].sectors);
    MDFS_PUT(out, base, mdfs_checksum_record, crc32c, slot.checksum_records[i].crc32c);
    MDFS_PUT(out, base, mdfs_checksum_record, sector, slot.checksum_records[i].sector);
  }
  seal(out, offsetof(mdfs_commit_slot, crc32c));
}

std::optional<std::uint64_t> sealed_slot_generation(ConstBytes bytes, const Uuid& volume_uuid) {
  if (bytes.size() != MDFS_SLOT_SIZE || !has_text(bytes, offsetof(mdfs_commit_slot, magic), MDFS_COMMIT_MAGIC) ||
      !seal_holds(bytes, offsetof(mdfs_commit_slot, crc32c)) ||
      get_uuid(bytes, offsetof(mdfs_commit_slot, volume_uuid)) != volume_uuid)
    return std::nullopt;
  return MDFS_GET(bytes, 0, mdfs_commit_slot, generation);
}

Result<CommitSlot> decode_commit_slot(ConstBytes bytes, const Uuid& volume_uuid) {
  MDFS_FORMAT_REQUIRE(bytes.size() == MDFS_SLOT_SIZE, "commit.size");
  MDFS_FORMAT_REQUIRE(has_text(bytes, offsetof(mdfs_commit_slot, magic), MDFS_COMMIT_MAGIC), "commit.magic");
  MDFS_FORMAT_REQUIRE(seal_holds(bytes, offsetof(mdfs_commit_slot, crc32c)), "commit.checksum");
  CommitSlot slot;
  slot.volume_uuid = get_uuid(bytes, offsetof(mdfs_commit_slot, volume_uuid));
  MDFS_FORMAT_REQUIRE(slot.volume_uuid == volume_uuid, "commit.volume-uuid");
  slot.state = MDFS_GET(bytes, 0, mdfs_commit_slot, state);
  slot.commit_id = get_uuid(bytes, offsetof(mdfs_commit_slot, commit_id));
  slot.parent_id = get_uuid(bytes, offsetof(mdfs_commit_slot, parent_id));
  slot.generation = MDFS_GET(bytes, 0, mdfs_commit_slot, generation);
  slot.time_ns = MDFS_GET(bytes, 0, mdfs_commit_slot, time_ns);
  slot.participants = MDFS_GET(bytes, 0, mdfs_commit_slot, participants);
  slot.next_object = MDFS_GET(bytes, 0, mdfs_commit_slot, next_object);
  slot.objects = MDFS_GET(bytes, 0, mdfs_commit_slot, objects);
  slot.flags = MDFS_GET(bytes, 0, mdfs_commit_slot, flags);
  const auto disks = MDFS_GET(bytes, 0, mdfs_commit_slot, disk_count);
  MDFS_FORMAT_REQUIRE(disks >= 1 && disks <= MDFS_MAX_DISKS, "commit.disk-count");
  const auto roots = MDFS_GET(bytes, 0, mdfs_commit_slot, root_count);
  MDFS_FORMAT_REQUIRE(roots >= 1 && roots <= MDFS_MAX_ROOTS, "commit.root-count");
  for (std::size_t i = 0; i < roots; ++i) {
    MDFS_TRY_ASSIGN(Root root, decode_root(bytes, root_offset(i)));
    slot.roots.push_back(root);
  }
  for (std::size_t i = 0; i < disks; ++i) {
    const std::size_t base = space_offset(i);
    slot.space.push_back({MDFS_GET(bytes, base, mdfs_space_top, crc32c), MDFS_GET(bytes, base, mdfs_space_top, slot),
                          MDFS_GET(bytes, base, mdfs_space_top, free_blocks)});
  }
  slot.membership = MDFS_GET(bytes, 0, mdfs_commit_slot, membership);
  for (std::size_t i = 0; i < disks; ++i) {
    slot.members.push_back(decode_member(bytes, member_offset(i)));
    slot.states.push_back(decode_state(bytes, state_offset(i)));
  }
  slot.features = {MDFS_GET(bytes, 0, mdfs_commit_slot, features_compat),
                   MDFS_GET(bytes, 0, mdfs_commit_slot, features_ro_compat),
                   MDFS_GET(bytes, 0, mdfs_commit_slot, features_incompat)};
  get_bytes(bytes, offsetof(mdfs_commit_slot, reserved0), slot.reserve.counters);
  get_bytes(bytes, CommitReserve::kBegin, slot.reserve.middle);
  get_bytes(bytes, offsetof(mdfs_commit_slot, reserved2), slot.reserve.end);
  const auto checksum_records = MDFS_GET(bytes, 0, mdfs_commit_slot, checksum_record_count);
  MDFS_FORMAT_REQUIRE(checksum_records <= MDFS_MAX_CHECKSUM_RECORDS, "commit.checksum_records");
  for (std::size_t i = 0; i < checksum_records; ++i) {
    const std::size_t base = checksum_record_offset(i);
    slot.checksum_records.push_back(
        {MDFS_GET(bytes, base, mdfs_checksum_record, disk), MDFS_GET(bytes, base, mdfs_checksum_record, sectors),
         MDFS_GET(bytes, base, mdfs_checksum_record, crc32c), MDFS_GET(bytes, base, mdfs_checksum_record, sector)});
  }
  MDFS_TRY(check_known(slot));
  MDFS_TRY(check(slot));
  return slot;
}

}  // namespace mdfs::format
