// Labels, commit slots and pointers.
// SPDX-License-Identifier: Apache-2.0
#include "format/sealed.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/crc32c.h"
#include "format/dirent.h"
#include "format/fields.h"
#include "format/limits.h"
#include "samples.h"

namespace mdfs::format {
namespace {

ByteVector encoded(const Label& label) {
  ByteVector bytes(MDFS_SECTOR);
  encode(label, bytes);
  return bytes;
}

ByteVector encoded(const CommitSlot& slot) {
  ByteVector bytes(MDFS_SLOT_SIZE);
  encode(slot, bytes);
  return bytes;
}

void flip(ByteVector& bytes, std::size_t bit) { bytes[bit / 8] ^= std::byte{1} << (bit % 8); }

RC_GTEST_PROP(LabelTest, ReadsBackAsItWasWritten, (std::uint64_t seed)) {
  const Label label = Samples(seed).label();
  const auto decoded = decode_label(encoded(label));
  RC_ASSERT(decoded.ok());
  RC_ASSERT(*decoded == label);
}

RC_GTEST_PROP(CommitSlotTest, ReadsBackAsItWasWritten, (std::uint64_t seed)) {
  const CommitSlot slot = Samples(seed).commit_slot();
  const auto decoded = decode_commit_slot(encoded(slot), slot.volume_uuid);
  RC_ASSERT(decoded.ok());
  RC_ASSERT(*decoded == slot);
}

RC_GTEST_PROP(PointerTest, ReadsBackAsItWasWritten, (std::uint64_t seed)) {
  const Pointer pointer = Samples(seed).pointer(UINT64_MAX);
  ByteVector bytes(sizeof(mdfs_pointer) + 5);
  encode(pointer, bytes, 5);
  const auto decoded = decode_pointer(bytes, 5);
  RC_ASSERT(decoded.ok());
  RC_ASSERT(*decoded == pointer);
}

// The bytes of a slot with one number changed, under a checksum that is right.
template <typename Number>
std::string error_with(std::size_t offset, Number value) {
  const CommitSlot slot = Samples(4).commit_slot();
  ByteVector bytes = encoded(slot);
  store_le<Number>(bytes, offset, value);
  seal(bytes, offsetof(mdfs_commit_slot, crc32c));
  const auto decoded = decode_commit_slot(bytes, slot.volume_uuid);
  return decoded.ok() ? "" : decoded.error().where;
}

TEST(CommitSlotTest, CountersBeyondTheirBoundsAreRefused) {
  constexpr std::size_t kNodes = offsetof(mdfs_commit_slot, roots) + offsetof(mdfs_root, nodes);
  const struct {
    std::size_t offset;
    std::uint64_t most;
    const char* check;
  } counters[] = {{offsetof(mdfs_commit_slot, generation), kMaxGeneration, "commit.generation"},
                  {offsetof(mdfs_commit_slot, next_object), kMaxObject, "commit.next-object"},
                  {offsetof(mdfs_commit_slot, objects), kMaxObject, "commit.objects"},
                  {kNodes, kMaxNodes, "commit.roots"}};
  for (const auto& counter : counters) {
    EXPECT_EQ(error_with(counter.offset, counter.most), "") << counter.check;
    for (const std::uint64_t value : {counter.most + 1, UINT64_MAX - 1, UINT64_MAX})
      EXPECT_EQ(error_with(counter.offset, value), counter.check) << value;
  }
}

TEST(DirentTest, NumbersOfTheDaemonAreNoInodes) {
  ByteVector value = encode(Dirent{kMaxObject - 1, 8, "name"});
  EXPECT_TRUE(decode_dirent(value).ok());
  for (const std::uint64_t inode : {kMaxObject, std::uint64_t{1} << 63, UINT64_MAX}) {
    MDFS_PUT(value, 0, mdfs_dirent, inode, inode);
    const auto decoded = decode_dirent(value);
    ASSERT_FALSE(decoded.ok()) << inode;
    EXPECT_EQ(decoded.error().where, "dirent.inode");
  }
}

TEST(LabelTest, EverySingleFlippedBitIsFound) {
  ByteVector bytes = encoded(Samples(1).label());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    flip(bytes, bit);
    ASSERT_FALSE(decode_label(bytes).ok()) << bit;
    flip(bytes, bit);
  }
  EXPECT_TRUE(decode_label(bytes).ok());
}

TEST(CommitSlotTest, EverySingleFlippedBitIsFound) {
  const CommitSlot slot = Samples(1).commit_slot();
  ByteVector bytes = encoded(slot);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    flip(bytes, bit);
    ASSERT_FALSE(decode_commit_slot(bytes, slot.volume_uuid).ok()) << bit;
    flip(bytes, bit);
  }
  EXPECT_TRUE(decode_commit_slot(bytes, slot.volume_uuid).ok());
}

// Any damage with a checksum made to match: an error or a structure that can be written again, never a crash.
RC_GTEST_PROP(LabelTest, DamageUnderAGoodChecksumNeverCrashes, (std::uint64_t seed)) {
  Samples samples(seed);
  ByteVector bytes = encoded(samples.label());
  for (std::size_t i = samples.number(1, 8); i-- > 0;)
    bytes[samples.number(12, samples.coin() ? 200 : MDFS_SECTOR - 1)] = static_cast<std::byte>(samples.number(0, 255));
  seal(bytes, offsetof(mdfs_label, crc32c));
  const auto label = decode_label(bytes);
  if (label.ok()) RC_ASSERT(*decode_label(encoded(*label)) == *label);
}

RC_GTEST_PROP(CommitSlotTest, DamageUnderAGoodChecksumNeverCrashes, (std::uint64_t seed)) {
  Samples samples(seed);
  const CommitSlot original = samples.commit_slot();
  ByteVector bytes = encoded(original);
  for (std::size_t i = samples.number(1, 8); i-- > 0;)
    bytes[samples.number(12, samples.coin() ? 640 : MDFS_SLOT_SIZE - 1)] =
        static_cast<std::byte>(samples.number(0, 255));
  seal(bytes, offsetof(mdfs_commit_slot, crc32c));
  const auto slot = decode_commit_slot(bytes, original.volume_uuid);
  if (slot.ok()) RC_ASSERT(*decode_commit_slot(encoded(*slot), original.volume_uuid) == *slot);
}

// Each byte in turn, under a checksum made to match.
TEST(LabelTest, NoByteThatDecodingAcceptsIsLost) {
  Label label = Samples(2).label();
  for (std::uint64_t seed = 100; label.members.size() < MDFS_MAX_DISKS; ++seed) {
    label.members.push_back(label.members.front());
    label.members.back().uuid = Samples(seed).uuid();
  }
  const Rewritten rewritten =
      change_each_byte(encoded(label), SIZE_MAX, [](ByteVector& bytes) -> std::optional<ByteVector> {
        seal(bytes, offsetof(mdfs_label, crc32c));
        const auto decoded = decode_label(bytes);
        return decoded.ok() ? std::optional(encoded(*decoded)) : std::nullopt;
      });
  EXPECT_GT(rewritten.accepted, 2000u);
  EXPECT_EQ(rewritten.lost, std::vector<std::size_t>{});
}

TEST(CommitSlotTest, NoByteThatDecodingAcceptsIsLost) {
  CommitSlot slot = Samples(3).commit_slot();
  slot.participants = UINT64_MAX;
  slot.space.resize(MDFS_MAX_DISKS);
  slot.members.assign(MDFS_MAX_DISKS, Member{slot.commit_id, 70000, 1, 0, 6});
  slot.states.assign(MDFS_MAX_DISKS, MemberState{slot.commit_id, slot.generation, 9});
  slot.checksum_records.assign(MDFS_MAX_CHECKSUM_RECORDS, ChecksumRecord{0, 8, 1, 4096});
  for (std::size_t i = 0; i < MDFS_MAX_DISKS; ++i) slot.members[i].uuid = Samples(i).uuid();
  Rewritten rewritten = change_each_byte(encoded(slot), SIZE_MAX, [&](ByteVector& bytes) -> std::optional<ByteVector> {
    seal(bytes, offsetof(mdfs_commit_slot, crc32c));
    const auto decoded = decode_commit_slot(bytes, slot.volume_uuid);
    return decoded.ok() ? std::optional(encoded(*decoded)) : std::nullopt;
  });
  // Places of roots that the commit does not have are no part of it.
  constexpr std::size_t kUnusedRoots = offsetof(mdfs_commit_slot, roots) + sizeof(mdfs_root);
  std::erase_if(rewritten.lost,
                [](std::size_t at) { return at >= kUnusedRoots && at < offsetof(mdfs_commit_slot, space); });
  EXPECT_GT(rewritten.accepted, 8000u);
  EXPECT_EQ(rewritten.lost, std::vector<std::size_t>{});
}

TEST(LabelTest, EachCheckIsReportedByItsName) {
  Samples samples(3);
  const auto with = [&](auto change) {
    Label label = Samples(3).label();
    ByteVector bytes = encoded(label);
    change(MutableBytes(bytes));
    seal(bytes, offsetof(mdfs_label, crc32c));
    return check_name(decode_label(bytes));
  };
  const auto put = [&](auto field, std::size_t offset) {
    return [=](MutableBytes bytes) { store_le<decltype(field)>(bytes, offset, field); };
  };
  EXPECT_EQ(with(put(std::uint8_t{0}, 0)), "label.magic");
  EXPECT_EQ(with(put(MDFS_FORMAT_VERSION + 1, offsetof(mdfs_label, format_version))), "label.version");
  EXPECT_EQ(with(put(std::uint64_t{0}, offsetof(mdfs_label, room_blocks))), "label.room-blocks");
  EXPECT_EQ(with(put(UINT64_MAX, offsetof(mdfs_label, room_blocks))), "label.room-blocks");
  EXPECT_EQ(with(put(std::uint16_t{0}, offsetof(mdfs_label, disk_count))), "label.disk-count");
  EXPECT_EQ(with(put(std::uint16_t{65}, offsetof(mdfs_label, disk_count))), "label.disk-count");
  EXPECT_EQ(with(put(std::uint16_t{64}, offsetof(mdfs_label, disk_index))), "label.disk-index");
  EXPECT_EQ(with(put(std::uint32_t{4097}, offsetof(mdfs_label, block_size))), "label.block-size");
  EXPECT_EQ(with(put(std::uint64_t{1}, offsetof(mdfs_label, disk_blocks))), "label.disk-blocks");
  EXPECT_EQ(with(put(UINT64_MAX, offsetof(mdfs_label, disk_blocks))), "label.disk-blocks");
  EXPECT_EQ(with(put(std::uint64_t{0}, offsetof(mdfs_label, zone_blocks))), "label.zone-blocks");
  EXPECT_EQ(with(put(UINT64_MAX, offsetof(mdfs_label, metadata_blocks))), "label.metadata-blocks");
  EXPECT_EQ(with(put(std::uint16_t{4}, offsetof(mdfs_label, label_number))), "label.number");
  EXPECT_EQ(with(put(std::uint8_t{4}, offsetof(mdfs_label, policy))), "label.policy");
  EXPECT_EQ(with(put(std::uint16_t{9}, offsetof(mdfs_label, ring_slots))), "label.ring-slots");
  EXPECT_EQ(with([](MutableBytes) {}), "");
}

TEST(LabelTest, AnotherVersionSaysWhetherItIsNewerOrOlder) {
  ByteVector bytes = encoded(Samples(3).label());
  for (const auto& [version, code] :
       {std::pair{MDFS_FORMAT_VERSION + 1, Errc::kNewerFormat}, std::pair{UINT32_MAX, Errc::kNewerFormat},
        std::pair{MDFS_FORMAT_VERSION - 1, Errc::kOlderFormat}, std::pair{0u, Errc::kOlderFormat}}) {
    store_le<std::uint32_t>(bytes, offsetof(mdfs_label, format_version), version);
    seal(bytes, offsetof(mdfs_label, crc32c));
    EXPECT_EQ(decode_label(bytes).error().code, code) << version;
  }
}

TEST(LabelTest, UnknownFeaturesLimitWhatMayBeDone) {
  Features features;
  EXPECT_EQ(*access_allowed(features), Access::kReadWrite);
  features.ro_compat = MDFS_RO_COMPAT_SNAPSHOTS;
  EXPECT_EQ(*access_allowed(features), Access::kReadOnly);
  features.incompat = MDFS_INCOMPAT_INTENT_LOG;
  EXPECT_EQ(access_allowed(features).error().code, Errc::kNewerFormat);
}

TEST(CommitSlotTest, AnotherVolumesSlotIsRefused) {
  EXPECT_EQ(check_name(decode_commit_slot(encoded(Samples(1).commit_slot()), Uuid{})), "commit.volume-uuid");
}

TEST(PointerTest, ABlockThatDoesNotMatchIsRefused) {
  ByteVector block = Samples(5).bytes(100);
  const Address place[] = {{1, 2}};
  const Pointer pointer = make_pointer(block, 1, place);
  EXPECT_TRUE(verify(pointer, block).ok());
  flip(block, 77);
  EXPECT_EQ(check_name(verify(pointer, block)), "block.checksum");
  EXPECT_EQ(check_name(verify(pointer, ConstBytes(block).first(99))), "block.length");
}

TEST(CommitSlotTest, StatesOfMembersAreTheNewestCommitsTheyTookPartIn) {
  CommitSlot parent = Samples(7).commit_slot();
  CommitSlot slot = parent;
  slot.commit_id = Samples(8).uuid();
  slot.parent_id = parent.commit_id;
  slot.generation = parent.generation + 1;
  slot.members.push_back({Samples(9).uuid(), 1, 1});
  slot.participants = 1 | std::uint64_t{1} << parent.members.size();
  const auto states = member_states(slot, &parent);
  ASSERT_EQ(states.size(), slot.members.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    const bool takes_part = ((slot.participants >> i) & 1) != 0;
    EXPECT_EQ(states[i].commit_id, takes_part ? slot.commit_id : parent.states[i].commit_id) << i;
    EXPECT_EQ(states[i].generation, takes_part ? slot.generation : parent.states[i].generation) << i;
  }
}

TEST(CommitSlotTest, AStateOfAHoleOrOfTheFutureIsRefused) {
  constexpr std::size_t kGeneration =
      offsetof(mdfs_commit_slot, member_states) + offsetof(mdfs_member_state, generation);
  EXPECT_EQ(error_with(kGeneration, UINT64_MAX), "commit.member-states");
  const bool hole = Samples(4).commit_slot().members[0].is_hole();
  EXPECT_EQ(error_with(kGeneration, std::uint64_t{hole}), "commit.member-states");
}

TEST(PointerTest, AnUnknownTypeOfChecksumIsOfANewerVersion) {
  ByteVector bytes(sizeof(mdfs_pointer));
  encode(Samples(5).pointer(9), bytes);
  MDFS_PUT(bytes, 0, mdfs_pointer, checksum_type, std::uint8_t{MDFS_CHECKSUM_BLAKE3});
  EXPECT_EQ(decode_pointer(bytes).error().code, Errc::kNewerFormat);
}

TEST(PointerTest, TheSamePlaceTwiceIsRefused) {
  ByteVector bytes(sizeof(mdfs_pointer));
  Pointer pointer = Samples(5).pointer(9);
  pointer.copies = 2;
  pointer.address = {Address{1, 7}, Address{1, 7}, Address{}};
  encode(pointer, bytes);
  EXPECT_EQ(check_name(decode_pointer(bytes)), "pointer.address");
}

}  // namespace
}  // namespace mdfs::format
