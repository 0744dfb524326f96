// Opening volumes whose disks are missing, stale, damaged, doubled or foreign.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/aligned_buffer.h"
#include "base/crc32c.h"
#include "device/testing/faulty_disk.h"
#include "format/label.h"
#include "format/layout.h"
#include "store/labels.h"
#include "store_fixture.h"
#include "tried.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kDiskBytes = 8u << 20;
const Key kKey{20, 1, 0};

// Label areas of a disk of kDiskBytes.
std::uint64_t area_offset(unsigned number) {
  return number < 2 ? number * std::uint64_t{MDFS_LABEL_AREA}
                    : kDiskBytes - (4 - number) * std::uint64_t{MDFS_LABEL_AREA};
}

class RecoveryTest : public testing::Test {
 protected:
  void make(std::size_t count, const FormatOptions& options = {}) {
    disks_ = make_disks(count, kDiskBytes);
    ASSERT_OK(format_disks(disks_, environment_, options));
  }

  // Puts a value and commits, on these disks, for good.
  Status put(const Disks& disks, std::uint64_t value, const StoreOptions& options = {}) {
    MDFS_TRY_ASSIGN(auto store, open_disks(disks, environment_, options));
    MDFS_TRY(store->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
      transaction.put(kKey, value_of(16, value));
      return {};
    }));
    MDFS_TRY(store->commit());
    return store->finalize();
  }

  void expect_value(const Disks& disks, std::uint64_t value) {
    auto store = open_disks(disks, environment_);
    ASSERT_OK(store);
    const auto got = (*store)->get(kKey);
    ASSERT_OK(got);
    EXPECT_EQ(*got, std::optional(value_of(16, value)));
  }

  // Changes the label's bytes on all four places and makes their checksums right again.
  void edit_labels(device::MemoryDisk& disk, std::size_t offset, std::uint64_t value) {
    for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i) {
      ByteVector sector(MDFS_SECTOR);
      disk.peek(area_offset(i), sector);
      store_le<std::uint64_t>(sector, offset, value);
      store_le<std::uint32_t>(sector, offsetof(mdfs_label, crc32c), 0);
      store_le<std::uint32_t>(sector, offsetof(mdfs_label, crc32c), crc32c(sector));
      disk.poke(area_offset(i), sector);
    }
  }

  Errc open_error(const Disks& disks) {
    auto store = open_disks(disks, environment_);
    EXPECT_FALSE(store.ok());
    return store.ok() ? Errc::kUsage : store.error().code;
  }

  SeededEnvironment environment_{11};
  Disks disks_;
};

Disks clones_of(std::initializer_list<const device::MemoryDisk*> list) {
  Disks disks;
  for (const auto* disk : list) disks.push_back(disk->clone());
  return disks;
}

TEST_F(RecoveryTest, AnySubsetOfWipedLabelsButAllOfADiskIsRepaired) {
  make(2);
  ASSERT_OK(put(disks_, 1));
  for (unsigned wiped = 1; wiped < 15; ++wiped) {
    const Disks damaged = clone_disks(disks_);
    for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i)
      if ((wiped >> i) & 1) damaged[wiped % 2]->zero(area_offset(i), MDFS_LABEL_AREA);
    expect_value(damaged, 1);
    // Opening wrote them anew: the other labels may go now.
    for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i)
      if (!((wiped >> i) & 1)) damaged[wiped % 2]->zero(area_offset(i), MDFS_LABEL_AREA);
    expect_value(damaged, 1);
  }
  test::tried("14 subsets of the labels of a disk wiped, then the others");
  disks_[0]->zero(0, 2 * MDFS_LABEL_AREA);
  disks_[0]->zero(area_offset(2), 2 * MDFS_LABEL_AREA);
  EXPECT_EQ(open_error(disks_), Errc::kForeignDisk);
}

TEST_F(RecoveryTest, AMissingDiskLeavesAMajorityWritable) {
  make(3);
  ASSERT_OK(put(disks_, 1));
  Disks two = clone_disks(disks_);
  two[1].reset();
  expect_value(two, 1);
  ASSERT_OK(put(two, 2));
  expect_value(two, 2);
  auto store = open_disks(two, environment_);
  ASSERT_OK(store);
  EXPECT_EQ((*store)->disk_info(1).state, DiskState::kMissing);
  AlignedBuffer buffer(4096);
  EXPECT_EQ(device::read((*store)->disk(1), 0, buffer.bytes()).error().code, Errc::kMissingDisk);
}

TEST_F(RecoveryTest, AMinorityIsReadOnlyUnlessDegradedIsOrdered) {
  make(2);
  ASSERT_OK(put(disks_, 1));
  Disks one = clone_disks(disks_);
  one[0].reset();
  const std::uint64_t before = one[1]->digest();
  expect_value(one, 1);
  EXPECT_EQ(put(one, 2).error().code, Errc::kReadOnly);
  EXPECT_EQ(one[1]->digest(), before);
  StoreOptions options;
  options.degraded = true;
  ASSERT_OK(put(one, 2, options));
  expect_value(one, 2);
}

TEST_F(RecoveryTest, AStaleDiskCountsAsMissingAndIsNeverMerged) {
  make(3);
  ASSERT_OK(put(disks_, 1));
  const Disks old = clone_disks(disks_);
  for (std::uint64_t value = 2; value < 9; ++value) ASSERT_OK(put(disks_, value));
  const Disks mixed = clones_of({old[0].get(), disks_[1].get(), disks_[2].get()});
  expect_value(mixed, 8);
  auto store = open_disks(mixed, environment_);
  ASSERT_OK(store);
  EXPECT_EQ((*store)->disk_info(0).state, DiskState::kStale);
  EXPECT_FALSE((*store)->read_only());
  // Two old ones are a majority, but the newest commit wins, and it is on a minority.
  const Disks outvoted = clones_of({old[0].get(), old[1].get(), disks_[2].get()});
  auto minority = open_disks(outvoted, environment_);
  ASSERT_OK(minority);
  EXPECT_TRUE((*minority)->read_only());
}

TEST_F(RecoveryTest, HalvesThatWentOnApartAreRefused) {
  make(2);
  ASSERT_OK(put(disks_, 1));
  StoreOptions options;
  options.degraded = true;
  Disks left = clone_disks(disks_);
  Disks right = clone_disks(disks_);
  left[1].reset();
  right[0].reset();
  ASSERT_OK(put(left, 2, options));
  ASSERT_OK(put(right, 3, options));
  EXPECT_EQ(open_error(clones_of({left[0].get(), right[1].get()})), Errc::kFork);
}

TEST_F(RecoveryTest, OneCommittedSlotOnOneDiskProvesTheCommitForAll) {
  FormatOptions options;
  options.features_incompat = 0;  // commits have no checksum records
  make(3, options);
  ASSERT_OK(put(disks_, 1));
  const Disks before = clone_disks(disks_);
  ASSERT_OK(put(disks_, 2));
  // Generation 3 is in ring slots 6 (prepared) and 7 (committed); take the committed one from all but one place.
  for (std::size_t disk = 0; disk < 3; ++disk)
    for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i)
      if (disk != 1 || i != 2) disks_[disk]->zero(area_offset(i) + MDFS_SLOT_SIZE * (1 + 7), MDFS_SLOT_SIZE);
  const Disks cut = clone_disks(disks_);
  expect_value(disks_, 2);
  // Opening made it present on all: the disk that had it may go.
  disks_[1].reset();
  expect_value(disks_, 2);
  // Without it the commit was never validated.
  Disks without = clone_disks(cut);
  without[1]->zero(area_offset(2) + MDFS_SLOT_SIZE * (1 + 7), MDFS_SLOT_SIZE);
  expect_value(without, 1);
  // The next commit takes a generation of its own, above the prepared one.
  ASSERT_OK(put(without, 5));
  expect_value(without, 5);
}

TEST_F(RecoveryTest, AHealthyDiskIsNotStaleForACutBetweenTheSlotsOfTwoDisks) {
  make(2);
  ASSERT_OK(put(disks_, 1));
  ASSERT_OK(put(disks_, 2));
  for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i)
    disks_[0]->zero(area_offset(i) + MDFS_SLOT_SIZE * (1 + 7), MDFS_SLOT_SIZE);
  auto store = open_disks(disks_, environment_);
  ASSERT_OK(store);
  EXPECT_EQ((*store)->disk_info(0).state, DiskState::kHealthy);
  EXPECT_EQ((*store)->disk_info(1).state, DiskState::kHealthy);
}

TEST_F(RecoveryTest, ATruncatedDiskCountsAsFailed) {
  make(3);
  ASSERT_OK(put(disks_, 1));
  disks_[2]->resize(kDiskBytes - (1u << 20));
  expect_value(disks_, 1);
  auto store = open_disks(disks_, environment_);
  ASSERT_OK(store);
  EXPECT_EQ((*store)->disk_info(2).state, DiskState::kFailed);
}

// Nothing can be said about a disk that answers errors. The caller gave no wrong argument.
TEST_F(RecoveryTest, ADiskWithoutAReadableLabelIsAnErrorOfTheDisk) {
  make(1);
  device::FaultyDisk failing(*disks_[0], {{.kind = device::FaultKind::kGone}});
  std::vector<std::unique_ptr<device::Disk>> alone;
  alone.push_back(std::make_unique<BorrowedDisk>(failing));
  const auto store = Store::open(std::move(alone), {}, environment_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, Errc::kIo);
  EXPECT_NE(store.error().where.find(failing.name()), std::string::npos) << store.error().message();
}

TEST_F(RecoveryTest, ADiskThatHasGrownIsReadAsBefore) {
  make(2);
  ASSERT_OK(put(disks_, 1));
  disks_[0]->resize(2 * kDiskBytes);
  disks_[0]->zero(0, MDFS_LABEL_AREA);
  expect_value(disks_, 1);
}

TEST_F(RecoveryTest, NewerFormatsAreRefusedByTheNumberOfTheBit) {
  make(1);
  edit_labels(*disks_[0], offsetof(mdfs_label, features_incompat), std::uint64_t{1} << 17);
  auto store = open_disks(disks_, environment_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, Errc::kNewerFormat);
  EXPECT_NE(store.error().where.find("17"), std::string::npos) << store.error().where;
}

TEST_F(RecoveryTest, AnUnknownReadOnlyCompatibleFeatureMakesTheVolumeReadOnly) {
  make(1);
  edit_labels(*disks_[0], offsetof(mdfs_label, features_ro_compat), 4);
  auto store = open_disks(disks_, environment_);
  ASSERT_OK(store);
  EXPECT_TRUE((*store)->read_only());
  EXPECT_NE((*store)->read_only_reason(), "");
}

TEST_F(RecoveryTest, TheSameDiskTwiceAndDisksOfOtherVolumesAreRefused) {
  make(2);
  EXPECT_EQ(open_error(clones_of({disks_[0].get(), disks_[0].get()})), Errc::kForeignDisk);
  const Disks other = make_disks(1, kDiskBytes);
  ASSERT_OK(format_disks(other, environment_));
  EXPECT_EQ(open_error(clones_of({disks_[0].get(), other[0].get()})), Errc::kForeignDisk);
  EXPECT_EQ(open_error(make_disks(1, kDiskBytes)), Errc::kForeignDisk);
  EXPECT_EQ(open_error(make_disks(1, 8192)), Errc::kForeignDisk);
  EXPECT_EQ(open_error({}), Errc::kInvalidArgument);
}

TEST_F(RecoveryTest, ReadOnlyWritesNothing) {
  make(2);
  ASSERT_OK(put(disks_, 1));
  disks_[0]->zero(0, MDFS_LABEL_AREA);
  std::vector<std::uint64_t> before;
  for (const auto& disk : disks_) before.push_back(disk->digest());
  StoreOptions options;
  options.read_only = true;
  EXPECT_EQ(put(disks_, 2, options).error().code, Errc::kReadOnly);
  for (std::size_t i = 0; i < disks_.size(); ++i) EXPECT_EQ(disks_[i]->digest(), before[i]);
}

TEST_F(RecoveryTest, ARootWithoutAGoodCopyIsAClearError) {
  make(1);
  const format::DiskLayout layout(4096, kDiskBytes / 4096, format::default_metadata_blocks(4096, kDiskBytes / 4096));
  disks_[0]->zero(layout.first_usable() * 4096, (layout.metadata_end() - layout.first_usable()) * 4096);
  auto store = open_disks(disks_, environment_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, Errc::kCorrupt);
  EXPECT_NE(store.error().where.find("root"), std::string::npos) << store.error().where;
}

TEST_F(RecoveryTest, ABadCopyIsReadFromTheOtherAndWrittenAnew) {
  make(1);
  ASSERT_OK(put(disks_, 1));
  const format::DiskLayout layout(4096, kDiskBytes / 4096, format::default_metadata_blocks(4096, kDiskBytes / 4096));
  const std::uint64_t begin = layout.first_usable() * 4096;
  const std::uint64_t half = (layout.metadata_end() - layout.first_usable()) / 2 * 4096;
  for (const std::uint64_t lost : {begin, begin + half}) {
    // A whole half of the metadata region is lost, one copy of each node; opening reads, the next commit repairs.
    const Disks damaged = clone_disks(disks_);
    damaged[0]->zero(lost, half);
    expect_value(damaged, 1);
    {
      auto store = open_disks(damaged, environment_);
      ASSERT_OK(store);
      const auto put = [](Transaction& transaction) -> Status {
        transaction.put({21, 1, 0}, value_of(5, 5));
        return {};
      };
      ASSERT_OK((*store)->transact(Purpose::kNormal, put));
      ASSERT_OK((*store)->commit());
      ASSERT_OK((*store)->finalize());
    }
    damaged[0]->zero(lost == begin ? begin + half : begin, half);
    expect_value(damaged, 1);
  }
}

// Two halves that were written apart, so many commits each: never one is taken for merely behind.
// The size of a disk decides what lies beside the nodes: space pages of the same commit, for instance. Each commit is
// followed by a power cut, and by a mount.
TEST_F(RecoveryTest, ABadCopyOfANodeNeverGivesUpACommitThatOnlyItsChecksumsValidate) {
  std::set<std::uint64_t> places;
  for (std::uint64_t mib = 8; mib <= 96; mib += 8)
    for (const std::size_t count : {2u, 3u}) {
      disks_ = make_disks(count, mib << 20);
      ASSERT_OK(format_disks(disks_, environment_, {}));
      for (std::uint64_t value = 1; value <= 4; ++value) {
        auto store = open_disks(disks_, environment_);
        ASSERT_OK(store);
        ASSERT_OK((*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
          transaction.put(kKey, value_of(16, value));
          return {};
        }));
        ASSERT_OK((*store)->commit());
        const std::uint64_t generation = (*store)->generation();
        disks_ = clone_disks(disks_);
        const DiskLabels labels = read_labels(*disks_[0]);
        const auto slot = std::ranges::find_if(labels.slots, [&](const format::CommitSlot& one) {
          return one.generation == generation && one.state == MDFS_SLOT_PREPARED;
        });
        ASSERT_NE(slot, labels.slots.end());
        ASSERT_FALSE(slot->checksum_records.empty()) << mib << " MiB";
        for (const format::Address& address : slot->root(MDFS_ROOT_MAIN)->pointer.places()) {
          const Disks damaged = clone_disks(disks_);
          const std::uint64_t at = address.block * 4096 + 200;
          ByteVector byte(1);
          damaged[address.disk]->peek(at, byte);
          byte[0] ^= std::byte{4};
          damaged[address.disk]->poke(at, byte);
          SCOPED_TRACE(testing::Message()
                       << count << " disks of " << mib << " MiB, disk " << address.disk << ", block " << address.block);
          expect_value(damaged, value);
          places.insert(address.block);
        }
      }
    }
  EXPECT_GT(places.size(), 5u);
}

TEST_F(RecoveryTest, HalvesThatWereWrittenApartAreRefusedHoweverLongAgo) {
  StoreOptions degraded;
  degraded.degraded = true;
  for (const auto& [here, there] : {std::pair{1, 1}, {5, 1}, {1, 5}, {8, 2}, {20, 3}, {3, 20}}) {
    make(2);
    ASSERT_OK(put(disks_, 1));
    Disks first = clone_disks(disks_);
    Disks second = clone_disks(disks_);
    first[1].reset();
    second[0].reset();
    for (int i = 0; i < here; ++i) ASSERT_OK(put(first, 100 + i, degraded));
    for (int i = 0; i < there; ++i) ASSERT_OK(put(second, 200 + i, degraded));
    Disks both;
    both.push_back(first[0]->clone());
    both.push_back(second[1]->clone());
    EXPECT_EQ(open_error(both), Errc::kFork) << here << " and " << there;
    const auto refused = open_disks(both, environment_);
    EXPECT_EQ(refused.error().message().find("--force"), std::string::npos) << refused.error().message();
    expect_value(first, 100 + here - 1);
    expect_value(second, 200 + there - 1);
  }
}

// The first disk took part in what the third one wrote, and was then put back from an older copy.
TEST_F(RecoveryTest, ADiskIsApartThoughADiskThatTookPartInItsCommitsWasPutBackFromACopy) {
  for (const auto& [here, there] : {std::pair{1, 1}, {1, 2}, {1, 20}, {2, 1}, {2, 20}, {9, 1}, {9, 20}}) {
    make(3);
    ASSERT_OK(put(disks_, 1));
    Disks first_and_third = clone_disks(disks_);
    first_and_third[1].reset();
    for (int i = 0; i < here; ++i) ASSERT_OK(put(first_and_third, 100 + i));
    Disks first_and_second = clone_disks(disks_);
    first_and_second[2].reset();
    for (int i = 0; i < there; ++i) ASSERT_OK(put(first_and_second, 200 + i));
    Disks all = clone_disks(first_and_second);
    all[2] = first_and_third[2]->clone();
    EXPECT_EQ(open_error(all), Errc::kFork) << here << " and " << there;
  }
}

// An older copy lies in the place of a disk, and the disk itself is elsewhere. A mount that only reads must not leave
// the disk behind.
TEST_F(RecoveryTest, AMountThatOnlyReadsBesideAnOldCopyOfADiskLeavesThatDiskCurrent) {
  for (const int commits : {1, 2, 9}) {
    for (std::size_t replaced = 0; replaced < 3; ++replaced) {
      make(3);
      ASSERT_OK(put(disks_, 1));
      Disks with_copy = clone_disks(disks_);
      for (int i = 0; i < commits; ++i) ASSERT_OK(put(disks_, 10 + i));
      for (std::size_t i = 0; i < 3; ++i)
        if (i != replaced) with_copy[i] = disks_[i]->clone();
      {
        auto store = open_disks(with_copy, environment_);
        ASSERT_OK(store);
        EXPECT_EQ((*store)->disk_info(static_cast<unsigned>(replaced)).state, DiskState::kStale);
        EXPECT_TRUE((*store)->holds_still());
      }
      for (std::size_t i = 0; i < 3; ++i) {
        if (i == replaced) continue;
        EXPECT_EQ(with_copy[i]->digest(), disks_[i]->digest());
      }
      // Who writes, gives the disk up.
      ASSERT_OK(put(with_copy, 50));
      with_copy[replaced] = disks_[replaced]->clone();
      auto store = open_disks(with_copy, environment_);
      ASSERT_OK(store);
      EXPECT_EQ((*store)->disk_info(static_cast<unsigned>(replaced)).state, DiskState::kStale);
      EXPECT_FALSE((*store)->holds_still());
    }
  }
}

TEST_F(RecoveryTest, ADiskThatWasAwayForManyCommitsIsBehindAndNoFork) {
  StoreOptions degraded;
  degraded.degraded = true;
  for (const int commits : {1, 3, 5, 20}) {
    make(3);
    ASSERT_OK(put(disks_, 1));
    for (unsigned away = 0; away < 3; ++away) {
      Disks two = clone_disks(disks_);
      two[away].reset();
      for (int i = 0; i < commits; ++i) ASSERT_OK(put(two, 10 + i));
      two[away] = disks_[away]->clone();
      expect_value(two, 10 + commits - 1);
      // The others leave one by one, on order.
      two[away].reset();
      two[(away + 1) % 3].reset();
      ASSERT_OK(put(two, 50, degraded));
      two[away] = disks_[away]->clone();
      expect_value(two, 50);
    }
  }
}

TEST_F(RecoveryTest, AnUnknownThingInTheNewestSlotIsRefusedAndNothingIsWritten) {
  struct Unknown {
    const char* what;
    std::size_t offset;
    std::uint8_t bit;
  };
  for (const Unknown& unknown :
       {Unknown{"commit.state", offsetof(mdfs_commit_slot, state), 4},
        Unknown{"commit.flags", offsetof(mdfs_commit_slot, flags), 2},
        Unknown{"commit.features-incompat", offsetof(mdfs_commit_slot, features_incompat) + 3, 0x20},
        Unknown{
            "commit.roots",
            offsetof(mdfs_commit_slot, roots) + offsetof(mdfs_root, pointer) + offsetof(mdfs_pointer, checksum_type),
            2},
        Unknown{"commit.roots", offsetof(mdfs_commit_slot, roots) + offsetof(mdfs_root, kind), 8},
        Unknown{"commit.members", offsetof(mdfs_commit_slot, members) + offsetof(mdfs_member, flags), 0x40},
        Unknown{"commit.members", offsetof(mdfs_commit_slot, members) + 32 + offsetof(mdfs_member, flags) + 1, 0x80}}) {
    make(2);
    ASSERT_OK(put(disks_, 1));
    std::uint64_t newest = 0;
    const DiskLabels labels = read_labels(*disks_[0]);
    for (const format::CommitSlot& slot : labels.slots) newest = std::max(newest, slot.generation);
    for (const auto& disk : disks_)
      for (unsigned label = 0; label < MDFS_LABELS_PER_DISK; ++label)
        for (const std::uint32_t state : {MDFS_SLOT_PREPARED, MDFS_SLOT_COMMITTED}) {
          const std::uint64_t at = area_offset(label) + MDFS_SLOT_SIZE * (1 + format::ring_slot(newest, state));
          ByteVector sector(MDFS_SLOT_SIZE);
          disk->peek(at, sector);
          if (load_le<std::uint64_t>(sector, offsetof(mdfs_commit_slot, generation)) != newest) continue;
          sector[unknown.offset] |= std::byte{unknown.bit};
          store_le<std::uint32_t>(sector, offsetof(mdfs_commit_slot, crc32c), 0);
          store_le<std::uint32_t>(sector, offsetof(mdfs_commit_slot, crc32c), crc32c(sector));
          disk->poke(at, sector);
        }
    const std::uint64_t before = disks_[0]->digest();
    const auto opened = open_disks(disks_, environment_);
    ASSERT_FALSE(opened.ok()) << unknown.what;
    EXPECT_EQ(opened.error().code, Errc::kNewerFormat) << opened.error().message();
    EXPECT_NE(opened.error().message().find(unknown.what), std::string::npos) << opened.error().message();
    EXPECT_EQ(disks_[0]->digest(), before);
  }
}

// What a newer version may have put where this one has nothing is there after this one has written.
TEST_F(RecoveryTest, ReservedBytesAreKeptByLaterCommits) {
  make(2);
  ASSERT_OK(put(disks_, 1));
  const auto newest_of = [](device::Disk& disk) {
    format::CommitSlot newest;
    for (const format::CommitSlot& slot : read_labels(disk).slots)
      if (slot.generation > newest.generation) newest = slot;
    return newest;
  };
  format::CommitSlot slot = newest_of(*disks_[0]);
  slot.state = MDFS_SLOT_COMMITTED;
  slot.reserve.middle.front() = slot.reserve.middle.back() = std::byte{0x5a};
  slot.reserve.end.front() = slot.reserve.end.back() = std::byte{0xa5};
  slot.reserve.counters.front() = std::byte{0x33};
  slot.roots.front().reserve.first.back() = std::byte{0x44};
  slot.roots.front().reserve.second.back() = std::byte{0x77};
  slot.features.compat = 1u << 9;
  for (std::size_t i = 0; i < 2; ++i) {
    slot.members[i].marks = static_cast<std::uint32_t>(70 + 2 * i);
    slot.states[i].out_ns = 80 + i;
  }
  const AlignedBuffer bytes = encode_slot(slot);
  const unsigned ring = format::ring_slot(slot.generation, slot.state);
  for (const auto& disk : disks_)
    for (unsigned label = 0; label < MDFS_LABELS_PER_DISK; ++label)
      disk->poke(area_offset(label) + MDFS_SLOT_SIZE * (1 + ring), bytes.bytes());
  for (int i = 0; i < 10; ++i) ASSERT_OK(put(disks_, 2));
  {
    auto store = open_disks(disks_, environment_);
    ASSERT_OK(store);
    ASSERT_OK((*store)->set_weight(1, 3));
  }
  const format::CommitSlot after = newest_of(*disks_[1]);
  EXPECT_GT(after.generation, slot.generation + 10);
  EXPECT_EQ(after.reserve, slot.reserve);
  EXPECT_EQ(after.roots.front().reserve, slot.roots.front().reserve);
  EXPECT_EQ(after.features, slot.features);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(after.members[i].marks, 70 + 2 * i);
    EXPECT_EQ(after.states[i].out_ns, 80 + i);
  }
}

TEST_F(RecoveryTest, AnOlderCommitIsReadOnRequestAloneAndNothingIsWritten) {
  make(2);
  ASSERT_OK(put(disks_, 1));
  ASSERT_OK(put(disks_, 2));
  StoreOptions options;
  options.read_only = true;
  const auto newest = open_disks(disks_, environment_, options);
  ASSERT_OK(newest);
  const std::uint64_t generation = (*newest)->generation();
  const std::uint64_t before = disks_[0]->digest();
  for (const std::uint64_t wanted : {std::uint64_t{0}, generation - 1}) {
    options.rollback = wanted;
    options.read_only = false;
    EXPECT_EQ(open_disks(disks_, environment_, options).error().code, Errc::kInvalidArgument);
    options.read_only = true;
    const auto opened = open_disks(disks_, environment_, options);
    ASSERT_OK(opened);
    EXPECT_EQ((*opened)->generation(), generation - 1);
    EXPECT_EQ(*(*opened)->get(kKey), std::optional(value_of(16, 1)));
  }
  EXPECT_EQ(disks_[0]->digest(), before);
  options.rollback = generation + 1;
  const auto missing = open_disks(disks_, environment_, options);
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message().find(std::to_string(generation)), std::string::npos);
}

}  // namespace
}  // namespace mdfs::store
