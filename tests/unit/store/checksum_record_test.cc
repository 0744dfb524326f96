// Commits that one flush makes last: known by their checksum records, by the commit after them, or given up.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <thread>

#include "base/aligned_buffer.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "device/disk_counters.h"
#include "format/layout.h"
#include "store/checksum_records.h"
#include "store/labels.h"
#include "store/recovery.h"
#include "store/unflushed.h"
#include "store/verifier.h"
#include "store_fixture.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kDiskBytes = 8u << 20;
constexpr std::uint32_t kBlock = 4096;
const Key kKey{20, 1, 0};

const Status quiet = set_log_level("off");

class ChecksumRecordTest : public testing::Test {
 protected:
  void make(std::size_t count, const FormatOptions& options = {}) {
    disks_ = make_disks(count, kDiskBytes);
    ASSERT_OK(format_disks(disks_, environment_, options));
  }

  std::unique_ptr<Store> open(const Disks& disks, const StoreOptions& options = {}) {
    auto store = open_disks(disks, environment_, options);
    EXPECT_TRUE(store.ok()) << message_of(store);
    return store.ok() ? std::move(*store) : nullptr;
  }

  // One transaction, not committed yet.
  static Status change(Store& store, const std::vector<alloc::Run>& published, std::optional<std::uint64_t> value) {
    return store.transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
      for (const alloc::Run& run : published) transaction.publish(run);
      if (value) transaction.put(kKey, value_of(16, *value));
      return {};
    });
  }
  static Status put(Store& store, std::uint64_t value) {
    MDFS_TRY(change(store, {}, value));
    return store.commit();
  }
  // A new volume with one commit for each value from 1 on.
  std::unique_ptr<Store> make_with(std::uint64_t values, std::size_t count) {
    make(count);
    auto store = open(disks_);
    for (std::uint64_t value = 1; value <= values; ++value) EXPECT_OK(put(*store, value));
    return store;
  }

  std::uint64_t value_on(const Disks& disks, const StoreOptions& options = {}) {
    auto store = open(disks, options);
    if (!store) return UINT64_MAX;
    const auto got = store->get(kKey);
    for (std::uint64_t value = 0; got.ok() && *got && value < 100; ++value)
      if (**got == value_of(16, value)) return value;
    return UINT64_MAX;
  }

  // The prepared slot of the last commit.
  format::CommitSlot slot_of(const Store& store) {
    const DiskLabels labels = read_labels(*disks_[0]);
    for (const format::CommitSlot& slot : labels.slots)
      if (slot.generation == store.generation() && slot.state == MDFS_SLOT_PREPARED) return slot;
    ADD_FAILURE() << "no prepared slot of generation " << store.generation();
    return {};
  }

  // Do all disks hold its committed slot?
  bool is_committed(std::uint64_t generation) const {
    return std::ranges::all_of(disks_, [&](const auto& disk) {
      const DiskLabels labels = read_labels(*disk);
      return std::ranges::any_of(labels.slots, [&](const format::CommitSlot& slot) {
        return slot.generation == generation && slot.state == MDFS_SLOT_COMMITTED;
      });
    });
  }

  static void spoil(const Disks& disks, const format::ChecksumRecord& checksum_record) {
    ByteVector byte(1);
    disks[checksum_record.disk]->peek(checksum_record.offset() + 77, byte);
    byte[0] ^= std::byte{0x40};
    disks[checksum_record.disk]->poke(checksum_record.offset() + 77, byte);
  }

  static std::uint64_t flushes(Store& store) { return store.counters(0)->flushes; }
  static std::uint64_t flushes_of_commit(Store& store) {
    const std::uint64_t before = flushes(store);
    EXPECT_OK(store.commit());
    return flushes(store) - before;
  }

  // Blocks with these bytes, written but not published.
  static alloc::Run write_blocks(Store& store, std::uint32_t blocks, std::uint64_t seed) {
    return write_blocks_on(store, 0, blocks, seed);
  }
  static alloc::Run write_blocks_on(Store& store, std::uint16_t disk, std::uint32_t blocks, std::uint64_t seed) {
    AllocationRequest request;
    request.disk = disk;
    request.blocks = blocks;
    const auto run = store.allocate(request, nullptr);
    EXPECT_TRUE(run.ok());
    rewrite(store, *run, seed);
    return *run;
  }
  static void rewrite(Store& store, const alloc::Run& run, std::uint64_t seed) {
    AlignedBuffer bytes(run.blocks * std::size_t{kBlock});
    const ByteVector value = value_of(bytes.size(), seed);
    std::copy(value.begin(), value.end(), bytes.bytes().begin());
    EXPECT_TRUE(device::write(store.disk(run.disk), run.block * kBlock, bytes.bytes()).ok());
  }

  SeededEnvironment environment_{5};
  Disks disks_;
};

TEST_F(ChecksumRecordTest, ASmallCommitTakesOneFlushAndIsFoundAfterACut) {
  make(2);
  auto store = open(disks_);
  const std::uint64_t before = flushes(*store);
  for (std::uint64_t value = 1; value <= 10; ++value) {
    ASSERT_OK(put(*store, value));
    EXPECT_EQ(flushes(*store), before + value);
    EXPECT_EQ(value_on(clone_disks(disks_)), value);
  }
}

TEST_F(ChecksumRecordTest, ALargeCommitTakesTwoFlushesAndHasNoChecksumRecords) {
  make(2);
  auto store = open(disks_);
  const alloc::Run run = write_blocks(*store, Unflushed::kMaxBytes / kBlock + 1, 3);
  ASSERT_OK(change(*store, {run}, std::nullopt));
  EXPECT_EQ(flushes_of_commit(*store), 2u);
  EXPECT_TRUE(slot_of(*store).checksum_records.empty());
}

TEST_F(ChecksumRecordTest, WhatALargeCommitWroteIsNoConcernOfTheSmallOneAfterIt) {
  make(2);
  auto store = open(disks_);
  ASSERT_OK(store->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
    for (std::uint64_t i = 0; i < 200; ++i) transaction.put({30 + i, 1, 0}, value_of(5000, i));
    return {};
  }));
  const std::uint64_t written = store->counters(0)->written_bytes;
  ASSERT_OK(store->commit());
  EXPECT_GT(store->counters(0)->written_bytes, written + Unflushed::kMaxBytes);
  for (std::uint64_t value = 1; value <= 3; ++value) {
    ASSERT_OK(change(*store, {}, value));
    EXPECT_EQ(flushes_of_commit(*store), 1u);
    EXPECT_EQ(value_on(clone_disks(disks_)), value);
  }
}

TEST_F(ChecksumRecordTest, ACommitOfMorePiecesThanASlotHoldsTakesTwoFlushes) {
  make(1);
  auto store = open(disks_);
  std::vector<alloc::Run> runs;
  for (unsigned i = 0; i < 2 * MDFS_MAX_CHECKSUM_RECORDS; ++i) runs.push_back(write_blocks(*store, 1, i));
  for (const std::ptrdiff_t published : {MDFS_MAX_CHECKSUM_RECORDS / 2, MDFS_MAX_CHECKSUM_RECORDS}) {
    ASSERT_OK(change(*store, {runs.end() - published, runs.end()}, std::nullopt));
    runs.resize(runs.size() - published);
    // What was written before the first of the two commits is no checksum record of the second.
    EXPECT_EQ(flushes_of_commit(*store), 1u);
  }
  runs.clear();
  for (unsigned i = 0; i < 2 * MDFS_MAX_CHECKSUM_RECORDS; ++i) {
    const alloc::Run run = write_blocks(*store, 1, i);
    if (i % 2 == 0) runs.push_back(run);
  }
  ASSERT_OK(change(*store, runs, 2));
  EXPECT_EQ(flushes_of_commit(*store), 2u);
  EXPECT_EQ(value_on(clone_disks(disks_)), 2u);
}

TEST_F(ChecksumRecordTest, ACommitThatWritesNothingIsProvenByItsSlots) {
  make(2);
  {
    auto store = open(disks_);
    ASSERT_OK(put(*store, 1));
    const device::DiskCounters& counters = *store->counters(0);
    // Scrubbing repairs a label with the slots of a commit that has nothing else to write.
    for (int i = 0; i < 3; ++i) {
      disks_[0]->zero(MDFS_LABEL_AREA, MDFS_LABEL_AREA);
      format::OperationRecord record;
      record.disks.resize(2);
      ASSERT_OK(store->verifier()->verify_labels(0, true, record));
      EXPECT_EQ(record.items_failed, 0u);
      EXPECT_EQ(record.items_changed, 1u);
      EXPECT_EQ(counters.write_errors, 0u);
    }
  }
  EXPECT_EQ(value_on(disks_), 1u);
}

TEST_F(ChecksumRecordTest, AVolumeOfAnEarlierVersionKeepsItsTwoFlushes) {
  FormatOptions options;
  options.features_incompat = MDFS_INCOMPAT_STRIPS;
  make(2, options);
  auto store = open(disks_);
  ASSERT_OK(change(*store, {}, 1));
  EXPECT_EQ(flushes_of_commit(*store), 2u);
  EXPECT_TRUE(slot_of(*store).checksum_records.empty());
}

// Is the record of nothing but nodes? They lie in the metadata region of the disk, space pages before it.
bool is_of_nodes(const format::ChecksumRecord& record) {
  const format::DiskLayout layout(kBlock, kDiskBytes / kBlock,
                                  format::default_metadata_blocks(kBlock, kDiskBytes / kBlock));
  const std::uint64_t block = record.offset() / kBlock;
  return block >= layout.first_usable() && block < layout.metadata_end();
}

TEST_F(ChecksumRecordTest, ACommitWhoseNodesHaveAGoodCopyEachSurvivesOneBadRecordOfNodesAndNoOther) {
  const auto store = make_with(2, 2);
  const format::CommitSlot slot = slot_of(*store);
  ASSERT_GE(slot.checksum_records.size(), 4u);
  std::set<std::pair<std::uint16_t, bool>> heard;
  for (const format::ChecksumRecord& checksum_record : slot.checksum_records) {
    const std::uint64_t value = is_of_nodes(checksum_record) ? 2 : 1;
    const Disks damaged = clone_disks(disks_);
    spoil(damaged, checksum_record);
    const Disks looked_at = clone_disks(damaged);
    StoreOptions read_only;
    read_only.read_only = true;
    EXPECT_EQ(value_on(looked_at, read_only), value);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(looked_at[i]->digest(), damaged[i]->digest());
    EXPECT_EQ(value_on(damaged), value);
    if (value == 2) {
      // The mount repaired the copy: any other copy may go now.
      for (const format::ChecksumRecord& other : slot.checksum_records) {
        const Disks twice = clone_disks(damaged);
        if (other != checksum_record && is_of_nodes(other)) spoil(twice, other);
        EXPECT_EQ(value_on(twice), value);
      }
    } else {
      // Now that the volume has been used without it, it does not come back with the bytes.
      spoil(damaged, checksum_record);
      EXPECT_EQ(value_on(damaged), 1u);
    }
    heard.insert({checksum_record.disk, value == 2});
  }
  EXPECT_EQ(heard.size(), 4u);  // nodes and space pages on both disks
}

TEST_F(ChecksumRecordTest, ACommitWithoutAnyGoodCopyOfANodeIsGivenUp) {
  const auto store = make_with(2, 2);
  const Disks damaged = clone_disks(disks_);
  for (const format::ChecksumRecord& checksum_record : slot_of(*store).checksum_records)
    if (is_of_nodes(checksum_record)) spoil(damaged, checksum_record);
  EXPECT_EQ(value_on(damaged), 1u);
}

TEST_F(ChecksumRecordTest, ACommitWhoseSlotIsLostOnOneDiskSurvivesAndTheDiskStaysCurrent) {
  const auto store = make_with(2, 2);
  const DiskLabels labels = read_labels(*disks_[0]);
  for (std::size_t disk = 0; disk < 2; ++disk) {
    const Disks damaged = clone_disks(disks_);
    for (const unsigned label : {0u, 2u})
      damaged[disk]->zero(layout_of(*labels.label).label_offset(label), MDFS_LABEL_AREA);
    auto opened = open(damaged);
    EXPECT_EQ(opened->disk_info(static_cast<unsigned>(disk)).state, DiskState::kHealthy);
    opened.reset();
    EXPECT_EQ(value_on(damaged), 2u);
    // With a record that does not match beside it, the disk may be an old copy: nothing is built without the right one.
    Disks torn = clone_disks(disks_);
    for (const unsigned label : {0u, 2u})
      torn[disk]->zero(layout_of(*labels.label).label_offset(label), MDFS_LABEL_AREA);
    for (const format::ChecksumRecord& checksum_record : slot_of(*store).checksum_records)
      if (checksum_record.disk == disk && is_of_nodes(checksum_record)) {
        spoil(torn, checksum_record);
        break;
      }
    EXPECT_TRUE(open(torn)->read_only());
    EXPECT_EQ(value_on(torn), 2u);
  }
}

TEST_F(ChecksumRecordTest, TheCommitAfterItProvesACommitWhateverItsChecksumRecordsSay) {
  const auto store = make_with(2, 2);
  const format::CommitSlot second = slot_of(*store);
  ASSERT_OK(put(*store, 3));
  const format::CommitSlot third = slot_of(*store);
  // A page of the map that the second wrote, and the third did not write over.
  const Disks damaged = clone_disks(disks_);
  ASSERT_FALSE(second.checksum_records.empty() || third.checksum_records.empty());
  spoil(damaged, third.checksum_records.front());
  spoil(damaged, second.checksum_records.back());
  auto opened = open_disks(damaged, environment_);
  ASSERT_OK(opened);
  EXPECT_EQ((*opened)->generation(), second.generation);
}

TEST_F(ChecksumRecordTest, WhileADiskThatTookPartIsAbsentTheCommitIsReadAndNothingIsBuiltOnIt) {
  const auto store = make_with(2, 3);
  for (unsigned missing = 0; missing < 3; ++missing) {
    Disks two = clone_disks(disks_);
    two[missing].reset();
    std::vector<std::uint64_t> before;
    for (const auto& disk : two) before.push_back(disk ? disk->digest() : 0);
    auto opened = open(two);
    EXPECT_TRUE(opened->read_only());
    EXPECT_NE(opened->read_only_reason().find("disk " + std::to_string(missing)), std::string::npos)
        << opened->read_only_reason();
    EXPECT_NE(opened->read_only_reason().find(opened->disk_info(missing).uuid.to_string()), std::string::npos);
    opened.reset();
    EXPECT_EQ(value_on(two), 2u);
    for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(two[i] ? two[i]->digest() : 0, before[i]);
    // The administrator gives the disk up.
    StoreOptions degraded;
    degraded.degraded = true;
    opened = open(two, degraded);
    EXPECT_FALSE(opened->read_only());
    EXPECT_OK(put(*opened, 3));
  }
}

TEST_F(ChecksumRecordTest, WaitingForACommitThatIsNotFinalizedEndsWhenTheDisksAreIdleOrOnRequest) {
  const auto store = make_with(1, 2);
  EXPECT_TRUE(store->wait_for_unfinalized(std::chrono::milliseconds(1)));
  ASSERT_OK(store->finalize());
  std::thread waiting([&] {
    EXPECT_TRUE(store->wait_for_unfinalized(std::chrono::milliseconds(1)));
    EXPECT_OK(store->finalize());
    EXPECT_FALSE(store->wait_for_unfinalized(std::chrono::milliseconds(1)));
  });
  ASSERT_OK(put(*store, 2));
  while (!is_committed(store->generation())) std::this_thread::yield();
  store->stop_waiting();
  waiting.join();
}

TEST_F(ChecksumRecordTest, AFinalizedCommitIsBuiltOnWithoutADisk) {
  const auto store = make_with(2, 3);
  ASSERT_OK(store->finalize());
  for (unsigned missing = 0; missing < 3; ++missing) {
    Disks two = clone_disks(disks_);
    two[missing].reset();
    auto opened = open(two);
    EXPECT_FALSE(opened->read_only());
    EXPECT_OK(put(*opened, 3));
    opened.reset();
    two[missing] = disks_[missing]->clone();
    EXPECT_EQ(value_on(two), 3u);
    EXPECT_EQ(open(two)->disk_info(missing).state, DiskState::kStale);
  }
}

// The power is cut while a commit is written; one healthy disk is late at the next boot and there at the one after.
TEST_F(ChecksumRecordTest, ADiskThatIsLateAtBootLosesNothingThatWasSyncedBefore) {
  const auto store = make_with(1, 3);
  ASSERT_OK(store->finalize());
  // A block on each disk, synced; then each is written anew, elsewhere, and that commit is cut on one disk.
  std::vector<alloc::Run> runs;
  for (std::uint16_t disk = 0; disk < 3; ++disk) runs.push_back(write_blocks_on(*store, disk, 1, 5));
  ASSERT_OK(change(*store, runs, 2));
  ASSERT_OK(store->commit());
  ASSERT_OK(store->finalize());
  const Disks synced = clone_disks(disks_);
  std::vector<alloc::Run> again;
  for (std::uint16_t disk = 0; disk < 3; ++disk) again.push_back(write_blocks_on(*store, disk, 1, 6));
  ASSERT_OK(store->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
    for (const alloc::Run& run : again) transaction.publish(run);
    for (const alloc::Run& run : runs) transaction.free(run);
    transaction.put(kKey, value_of(16, 3));
    return {};
  }));
  ASSERT_OK(store->commit());
  for (unsigned late = 0; late < 3; ++late) {
    Disks disks = clone_disks(disks_);
    disks[late] = synced[late]->clone();  // nothing of the commit has reached it
    std::unique_ptr<device::MemoryDisk> away = std::move(disks[late]);
    {
      auto opened = open(disks);
      EXPECT_TRUE(opened->read_only());
      EXPECT_FALSE(put(*opened, 9).ok());
    }
    disks[late] = std::move(away);
    auto opened = open(disks);
    EXPECT_FALSE(opened->read_only()) << opened->read_only_reason();
    for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(opened->disk_info(i).state, DiskState::kHealthy);
    EXPECT_EQ(*opened->get(kKey), std::optional(value_of(16, 2)));
    for (const alloc::Run& run : runs) {
      AlignedBuffer bytes(kBlock);
      ASSERT_OK(device::read(opened->disk(run.disk), run.block * kBlock, bytes.bytes()));
      EXPECT_TRUE(std::ranges::equal(bytes.bytes(), value_of(kBlock, 5)));
    }
  }
}

TEST_F(ChecksumRecordTest, ADiskThatMissedTheCommitContradictsItAndAnOlderOneIsAwaited) {
  const auto store = make_with(1, 3);
  const Disks away = clone_disks(disks_);
  ASSERT_OK(put(*store, 2));
  const Disks parent = clone_disks(disks_);
  ASSERT_OK(put(*store, 3));
  for (std::size_t i = 0; i < 3; ++i) {
    Disks torn = clone_disks(disks_);
    torn[i] = parent[i]->clone();
    EXPECT_EQ(value_on(torn), 2u);
    Disks stale = clone_disks(disks_);
    stale[i] = away[i]->clone();
    EXPECT_EQ(value_on(stale), 3u);
    EXPECT_TRUE(open(stale)->read_only());
    EXPECT_EQ(open(stale)->disk_info(static_cast<unsigned>(i)).state, DiskState::kStale);
  }
}

// Copies at rest: a power cut that took all of the third commit from one disk leaves the same bytes.
TEST_F(ChecksumRecordTest, ACommitThatAnOlderCopyOfADiskContradictsIsNamedAndReadWithoutThatDisk) {
  const auto store = make_with(1, 3);
  ASSERT_OK(put(*store, 2));
  ASSERT_OK(store->finalize());
  const Disks parent = clone_disks(disks_);
  ASSERT_OK(put(*store, 3));
  const auto recover_from = [](const Disks& disks) { return recover(borrow(disks)); };
  EXPECT_TRUE(recover_from(disks_)->dropped.empty());
  for (std::size_t i = 0; i < 3; ++i) {
    Disks replaced = clone_disks(disks_);
    replaced[i] = parent[i]->clone();
    const auto recovered = recover_from(replaced);
    ASSERT_OK(recovered);
    ASSERT_EQ(recovered->dropped.size(), 1u);
    EXPECT_EQ(recovered->dropped.front().slot.generation, store->generation());
    EXPECT_EQ(recovered->dropped.front().disk, replaced[i]->name());
    // The way out that the message gives.
    replaced[i].reset();
    StoreOptions read_only;
    read_only.read_only = true;
    EXPECT_EQ(value_on(replaced, read_only), 3u);
    EXPECT_TRUE(recover_from(replaced)->dropped.empty());
  }
}

TEST_F(ChecksumRecordTest, AFinalizedCommitNeedsNoChecksumRecords) {
  const auto store = make_with(2, 2);
  const format::CommitSlot slot = slot_of(*store);
  const std::uint64_t before = flushes(*store);
  ASSERT_OK(store->finalize());
  EXPECT_EQ(flushes(*store), before + 1);
  ASSERT_OK(store->finalize());
  EXPECT_EQ(flushes(*store), before + 1);  // once is enough
  for (const format::ChecksumRecord& checksum_record : slot.checksum_records) {
    if (checksum_record.disk != 0) continue;
    const Disks damaged = clone_disks(disks_);
    spoil(damaged, checksum_record);
    EXPECT_EQ(value_on(damaged), 2u);
  }
}

TEST_F(ChecksumRecordTest, RecoveryReadsEveryChecksumRecordOnceHoweverManyDisksThereAre) {
  const auto store = make_with(1, 3);
  const format::CommitSlot slot = slot_of(*store);
  const Disks unfinalized = clone_disks(disks_);
  ASSERT_OK(store->finalize());
  const auto reads = [&](const Disks& disks) {
    std::uint64_t sum = 0;
    auto opened = open(disks);
    for (unsigned i = 0; i < 3; ++i) sum += opened->counters(i)->reads;
    return sum;
  };
  EXPECT_EQ(reads(unfinalized), reads(clone_disks(disks_)) + slot.checksum_records.size());
}

TEST_F(ChecksumRecordTest, PublishedDataAreChecksumRecords) {
  const auto store = make_with(1, 2);
  const alloc::Run run = write_blocks(*store, 3, 9);
  ASSERT_OK(change(*store, {run}, 2));
  EXPECT_EQ(flushes_of_commit(*store), 1u);
  EXPECT_EQ(value_on(clone_disks(disks_)), 2u);
  const Disks torn = clone_disks(disks_);
  torn[run.disk]->zero((run.block + 2) * kBlock, 512);
  EXPECT_EQ(value_on(torn), 1u);
}

TEST_F(ChecksumRecordTest, WhatWasWrittenButNotPublishedMayBeWrittenAgainBesideACommit) {
  make(2);
  auto store = open(disks_);
  const alloc::Run run = write_blocks(*store, 3, 9);
  ASSERT_OK(put(*store, 1));
  rewrite(*store, run, 10);
  EXPECT_EQ(value_on(clone_disks(disks_)), 1u);
  store->abandon(run);
  const alloc::Run other = write_blocks(*store, 3, 11);
  EXPECT_EQ(value_on(clone_disks(disks_)), 1u);
  store->abandon(other);
}

TEST_F(ChecksumRecordTest, WhatWasWrittenTwiceCountsAsItIsInTheEnd) {
  make(1);
  auto store = open(disks_);
  const alloc::Run run = write_blocks(*store, 2, 9);
  rewrite(*store, run, 10);
  ASSERT_OK(change(*store, {run}, 2));
  ASSERT_OK(store->commit());
  EXPECT_EQ(value_on(clone_disks(disks_)), 2u);
}

TEST_F(ChecksumRecordTest, AWriteThatIsPublishedInPartTakesTwoFlushes) {
  const auto store = make_with(1, 1);
  alloc::Run run = write_blocks(*store, 4, 9);
  alloc::Run half = run;
  half.blocks = 2;
  ASSERT_OK(change(*store, {half}, 2));
  EXPECT_EQ(flushes_of_commit(*store), 2u);
  EXPECT_EQ(value_on(clone_disks(disks_)), 2u);
}

// ---- the parts

device::Io write_of(AlignedBuffer& buffer, std::uint64_t offset) {
  device::Io io;
  io.op = device::Op::kWrite;
  io.offset = offset;
  io.buffers = {buffer.bytes()};
  return io;
}

TEST(UnflushedTest, RemembersAsMuchAsIsLittleAndForgetsAllOnceThatIsNotAll) {
  Unflushed unflushed;
  AlignedBuffer small(4096);
  AlignedBuffer large(Unflushed::kMaxBytes);
  std::fill(small.bytes().begin(), small.bytes().end(), std::byte{1});
  std::fill(large.bytes().begin(), large.bytes().end(), std::byte{2});
  ASSERT_TRUE(unflushed.take());
  const auto crc = unflushed.checksum(write_of(small, 0));
  ASSERT_EQ(crc, crc32c(small.bytes()));
  unflushed.note(8192, 4096, true, crc);
  EXPECT_FALSE(unflushed.checksum(write_of(large, 0)));
  auto writes = unflushed.take();
  ASSERT_TRUE(writes);
  ASSERT_EQ(writes->size(), 1u);
  EXPECT_EQ(writes->front().offset, 8192u);
  EXPECT_EQ(writes->front().crc32c, *crc);
  EXPECT_TRUE(unflushed.checksum(write_of(large, 0)));
  // One that was not remembered, one that failed, one over a part of another, too many: nothing is known.
  unflushed.note(0, 4096, true, std::nullopt);
  EXPECT_FALSE(unflushed.take());
  unflushed.note(0, 4096, false, crc);
  EXPECT_FALSE(unflushed.take());
  unflushed.note(0, 8192, true, crc);
  unflushed.note(4096, 4096, true, crc);
  EXPECT_FALSE(unflushed.take());
  for (std::uint64_t i = 0; i <= Unflushed::kMaxWrites; ++i) unflushed.note(i * 4096, 4096, true, crc);
  EXPECT_FALSE(unflushed.take());
  // One over all of others takes their place.
  unflushed.note(0, 4096, true, 1);
  unflushed.note(4096, 4096, true, 2);
  unflushed.note(0, 8192, true, 3);
  writes = unflushed.take();
  ASSERT_TRUE(writes);
  ASSERT_EQ(writes->size(), 1u);
  EXPECT_EQ(writes->front().crc32c, 3u);
}

TEST(AddChecksumRecordsTest, TakesWhatLiesInPublishedRunsOfTheDiskAndDoubtsWhatLiesPartlyThere) {
  const std::vector<alloc::Run> published = {{0, 10, 2}, {0, 12, 3}, {1, 30, 5}, {0, 30, 1}};
  const auto at = [](std::uint64_t block, std::uint64_t blocks) {
    return Unflushed::Write{block * kBlock, blocks * kBlock, 7};
  };
  for (std::uint64_t begin = 0; begin < 40; ++begin)
    for (std::uint64_t blocks = 1; blocks < 8; ++blocks) {
      const auto inside = [&](std::uint64_t block) { return (block >= 10 && block < 15) || block == 30; };
      std::uint64_t count = 0;
      for (std::uint64_t block = begin; block < begin + blocks; ++block) count += inside(block) ? 1 : 0;
      std::vector<format::ChecksumRecord> checksum_records;
      EXPECT_EQ(add_checksum_records(0, {at(begin, blocks)}, published, kBlock, checksum_records),
                count == 0 || count == blocks);
      EXPECT_EQ(checksum_records.size(), count == blocks ? 1u : 0u) << begin << " " << blocks;
    }
}

}  // namespace
}  // namespace mdfs::store
