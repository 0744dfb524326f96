// A disk fails while the volume is in use: commits continue without it, and nothing acknowledged is lost.
// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "failing_volume.h"
#include "store/published_data.h"
#include "tried.h"

namespace mdfs::store {
namespace {

using device::FaultKind;
using device::Op;

const Status no_log = set_log_level("off");

class FailingDisksTest : public testing::TestWithParam<std::size_t> {};

TEST_P(FailingDisksTest, CommitsContinueWithoutADiskThatFailsForGood) {
  const std::size_t disks = GetParam();
  for (const Op op : {Op::kWrite, Op::kFlush}) {
    FailingVolume volume(disks);
    ASSERT_OK(volume.put(1));
    ASSERT_OK(volume.store().commit());
    volume.disk(1).add(failing(op));
    for (std::uint64_t n = 2; n < 9; ++n) {
      ASSERT_OK(volume.put(n));
      ASSERT_OK(volume.store().commit());
    }
    ASSERT_OK(volume.store().finalize());
    EXPECT_FALSE(volume.store().read_only());
    const DiskInfo info = volume.store().disk_info(1);
    EXPECT_TRUE(info.is_out);
    EXPECT_EQ(info.state, DiskState::kOut);
    EXPECT_GT(info.out_generation, 0u);
    EXPECT_GT(info.out_ns, 0);
    const std::uint64_t failed = volume.disks()[1]->digest();
    for (const bool attached : {true, false}) {
      const Disks given = attached ? clone_disks(volume.disks()) : without(volume.disks(), 1);
      auto store = open_disks(given, volume.environment());
      ASSERT_OK(store);
      EXPECT_FALSE((*store)->read_only()) << (*store)->read_only_reason();
      EXPECT_EQ(value_in(**store), 8u);
      EXPECT_EQ((*store)->disk_info(1).state, attached ? DiskState::kOut : DiskState::kMissing);
      EXPECT_TRUE((*store)->disk_info(1).is_out);
    }
    EXPECT_EQ(volume.disks()[1]->digest(), failed);
    expect_structure_is_sound(volume.disks(), true, "after a disk failed");
  }
}

INSTANTIATE_TEST_SUITE_P(Disks, FailingDisksTest, testing::Values(2, 3, 4));

TEST(FailingDiskTest, AWriteThatFailsOnceIsRepeatedAndAFlushIsNot) {
  for (const Op op : {Op::kWrite, Op::kFlush}) {
    FailingVolume volume(3);
    ASSERT_OK(volume.put(1));
    volume.disk(2).add(failing(op, 0, 1));
    ASSERT_OK(volume.store().commit());
    EXPECT_EQ(volume.store().disk_info(2).is_out, op == Op::kFlush);
    ASSERT_OK(volume.put(2));
    ASSERT_OK(volume.store().commit());
    expect_value_without(volume, 2, 2);
  }
}

TEST(FailingDiskTest, WithTooFewDisksTheVolumeIsReadOnlyAndReportsEveryCommit) {
  struct Case {
    std::size_t disks;
    std::vector<std::size_t> fail;
  };
  for (const Case& one : {Case{1, {0}}, Case{2, {0, 1}}, Case{3, {0, 1}}, Case{4, {0, 1, 2}}}) {
    FailingVolume volume(one.disks);
    ASSERT_OK(volume.put(1));
    ASSERT_OK(volume.store().commit());
    for (const std::size_t disk : one.fail) volume.disk(disk).add(failing(Op::kFlush));
    ASSERT_OK(volume.put(2));
    EXPECT_EQ(volume.store().commit().error().code, Errc::kIo);
    EXPECT_TRUE(volume.store().read_only());
    EXPECT_FALSE(volume.store().commit().ok());
    EXPECT_EQ(volume.put(3).error().code, Errc::kReadOnly);
    EXPECT_EQ(value_in(volume.store()), 2u) << "what is in memory can be read";
    auto store = open_disks(volume.disks(), volume.environment());
    ASSERT_OK(store);
    EXPECT_FALSE((*store)->read_only());
    EXPECT_GE(value_in(**store).value_or(0), 1u);
  }
}

TEST(FailingDiskTest, HalfOfTheDisksContinuesAndOneOfTwoAfterThat) {
  FailingVolume volume(4);
  std::uint64_t n = 0;
  for (const std::vector<std::size_t>& fail : {std::vector<std::size_t>{1, 3}, std::vector<std::size_t>{0}}) {
    ASSERT_OK(volume.put(++n));
    ASSERT_OK(volume.store().commit());
    for (const std::size_t disk : fail) volume.disk(disk).add(failing(Op::kFlush));
    ASSERT_OK(volume.put(++n));
    ASSERT_OK(volume.store().commit());
  }
  auto store = open_disks(volume.disks(), volume.environment());
  ASSERT_OK(store);
  EXPECT_FALSE((*store)->read_only());
  EXPECT_EQ(value_in(**store), n);
  for (const unsigned disk : {0u, 1u, 3u}) EXPECT_TRUE((*store)->disk_info(disk).is_out);
}

// Half of the disks may not continue while a third one is absent: it may be mounted elsewhere together with the failed.
TEST(FailingDiskTest, HalfOfTheDisksDoesNotContinueIfOneWasAbsentAtTheMount) {
  SeededEnvironment environment(3);
  const Disks disks = make_disks(4, kSmallDisk);
  ASSERT_OK(format_disks(disks, environment));
  std::vector<std::unique_ptr<device::Disk>> doors;
  for (std::size_t i = 0; i < 3; ++i) doors.push_back(std::make_unique<FaultyDisk>(*disks[i], std::vector<Fault>{}));
  auto* const failed = static_cast<FaultyDisk*>(doors[1].get());
  auto store = Store::open(std::move(doors), {}, environment);
  ASSERT_OK(store);
  const auto put = [&](Transaction& transaction) -> Status {
    transaction.put({20, 1, 0}, value_of(500, 1));
    return {};
  };
  ASSERT_OK((*store)->transact(Purpose::kNormal, put));
  ASSERT_OK((*store)->commit());
  failed->add(failing(Op::kFlush));
  ASSERT_OK((*store)->transact(Purpose::kNormal, put));
  EXPECT_FALSE((*store)->commit().ok());
  EXPECT_TRUE((*store)->read_only());
}

// The slots of a commit that is begun for the fourth time would lie where those of the last durable commit are.
TEST(FailingDiskTest, RepeatedCommitsLeaveTheSlotsOfTheLastDurableOneAlone) {
  FailingVolume volume(8);
  ASSERT_OK(volume.put(1));
  ASSERT_OK(volume.store().commit());
  ASSERT_OK(volume.store().finalize());
  const std::uint64_t before = volume.store().generation();
  // Each attempt flushes once, and so does each withdrawal.
  // No node has all its copies on these disks.
  for (std::size_t i = 0; i < 3; ++i) volume.disk(3 * i).add(failing(Op::kFlush, 2 * i));
  ASSERT_OK(volume.put(2));
  ASSERT_OK(volume.store().commit());
  EXPECT_EQ(volume.store().generation(), before + 5);
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(volume.store().disk_info(i).is_out, i % 3 == 0);
}

// ---- data that a failed disk may not have flushed

TEST(FailingDiskDataTest, WithoutUnflushedDataOnTheDiskTheCommitSucceeds) {
  FailingVolume volume(3);
  for (unsigned disk = 0; disk < 3; ++disk) ASSERT_OK(volume.put_data(disk, disk, 10 + disk));
  ASSERT_OK(volume.store().commit());
  ASSERT_OK(volume.put_data(0, 3, 13));
  ASSERT_OK(volume.put_data(2, 1, 14));  // takes the place of data on the failing disk
  volume.disk(1).add(failing(Op::kFlush));
  ASSERT_OK(volume.store().commit());
  ASSERT_OK(volume.put_data(1, 5, 15));  // is put elsewhere
  ASSERT_OK(volume.store().commit());
  for (const bool attached : {true, false}) {
    const Disks given = attached ? clone_disks(volume.disks()) : without(volume.disks(), 1);
    auto store = open_disks(given, volume.environment());
    ASSERT_OK(store);
    EXPECT_FALSE((*store)->read_only());
    EXPECT_EQ(data_in(**store, 0), 10u);
    EXPECT_EQ(data_in(**store, 1), 14u);
    EXPECT_EQ(data_in(**store, 2), 12u);
    EXPECT_EQ(data_in(**store, 3), 13u);
    EXPECT_EQ(data_in(**store, 5), 15u);
  }
}

// The new data would take the place of acknowledged data, and may be lost: the last commit stays as it was.
TEST(FailingDiskDataTest, UnflushedDataOnTheDiskFailTheCommitAndTheNextMountContinuesWithoutTheDisk) {
  for (const std::size_t disks : {2u, 3u, 4u}) {
    FailingVolume volume(disks);
    for (std::uint64_t n = 0; n < 4; ++n) ASSERT_OK(volume.put_data(0, n, 10 + n));
    ASSERT_OK(volume.put(1));
    ASSERT_OK(volume.store().commit());
    ASSERT_OK(volume.put_data(1, 0, 20));  // replaces acknowledged data on disk 0
    ASSERT_OK(volume.put(2));
    volume.disk(1).add(failing(Op::kFlush));
    EXPECT_EQ(volume.store().commit().error().code, Errc::kIo);
    EXPECT_TRUE(volume.store().read_only());
    EXPECT_NE(volume.store().read_only_reason().find("mount again"), std::string::npos);
    EXPECT_FALSE(volume.store().commit().ok());
    EXPECT_TRUE(volume.store().disk_info(1).is_out);
    for (const bool attached : {true, false}) {
      const Disks given = attached ? clone_disks(volume.disks()) : without(volume.disks(), 1);
      auto store = open_disks(given, volume.environment());
      ASSERT_OK(store);
      EXPECT_FALSE((*store)->read_only()) << (*store)->read_only_reason();
      EXPECT_TRUE((*store)->disk_info(1).is_out);
      EXPECT_EQ(value_in(**store), 1u);
      for (std::uint64_t n = 0; n < 4; ++n) EXPECT_EQ(data_in(**store, n), 10 + n);
    }
  }
}

TEST(PublishedDataTest, SaysWhichFailedDisksHaveDataAlone) {
  constexpr std::uint64_t kAll = 0b1111;
  PublishedData data;
  data.add(0);
  data.add(1, 0b1100);  // needs both
  data.add(2, 0b0001);
  data.add(3, 0);  // can be made again
  EXPECT_EQ(data.needed_of(0b0001, kAll & ~0b0001u), 0b0001u);
  EXPECT_EQ(data.needed_of(0b0010, kAll & ~0b0010u), 0u);
  EXPECT_EQ(data.needed_of(0b0110, kAll & ~0b0110u), 0b0010u) << "disk 2 is gone as well";
  EXPECT_EQ(data.needed_of(0b0010, 0b0101), 0b0010u) << "disk 3 does not take part";
  EXPECT_EQ(data.needed_of(0b1000, kAll & ~0b1000u), 0u);
  PublishedData more;
  more.add(3, 0b0001);
  data.add(more);
  EXPECT_EQ(data.needed_of(0b1001, kAll & ~0b1001u), 0b1001u);
}

TEST(FailingDiskDataTest, DataThatTheOtherDisksHaveDoNotFailTheCommit) {
  for (const bool both_fail : {false, true}) {
    FailingVolume volume(5);
    ASSERT_OK(volume.put_data(0, 0, 10));
    ASSERT_OK(volume.store().commit());
    ASSERT_OK(volume.put_data(1, 0, 20, 0b00100));
    ASSERT_OK(volume.put_data(2, 1, 20, 0b00010));
    volume.disk(1).add(failing(Op::kFlush));
    if (both_fail) volume.disk(2).add(failing(Op::kFlush));
    EXPECT_EQ(volume.store().commit().ok(), !both_fail);
    EXPECT_EQ(volume.store().read_only(), both_fail);
    EXPECT_TRUE(volume.store().disk_info(1).is_out);
    const Disks given = without(volume.disks(), 1);
    auto store = open_disks(given, volume.environment());
    ASSERT_OK(store);
    EXPECT_EQ(data_in(**store, both_fail ? 0 : 1), both_fail ? 10u : 20u);
  }
}

TEST(FailingDiskDataTest, ADiskThatFailsWritesAloneFlushesItsDataFirst) {
  FailingVolume volume(3);
  ASSERT_OK(volume.put_data(1, 0, 10));
  volume.disk(1).add(failing(Op::kWrite));
  ASSERT_OK(volume.store().commit());
  EXPECT_TRUE(volume.store().disk_info(1).is_out);
  volume.log().mark("acknowledged");
  const auto events = volume.log().events();
  device::CutBounds bounds;
  bounds.from = events.size();
  const std::size_t states = device::for_each_cut(volume.bases(), events, bounds, [&](Disks disks, const device::Cut&) {
    auto store = open_disks(disks, volume.environment());
    EXPECT_OK(store);
    EXPECT_EQ(store.ok() ? data_in(**store, 0) : 0, 10u);
    return true;
  });
  EXPECT_GT(states, 0u);
}

// What the commit frees is in use in the last durable one, though the commit was begun twice.
TEST(FailingDiskDataTest, BlocksFreedByARepeatedCommitWaitForTheNextOne) {
  FailingVolume volume(2);
  ASSERT_OK(volume.put_data(0, 0, 10));
  ASSERT_OK(volume.store().commit());
  const auto old = volume.store().get({kDataObject, 1, 0});
  ASSERT_OK(old);
  const alloc::Run run{0, load_le<std::uint64_t>(**old, 8), 1};
  ASSERT_OK(volume.store().transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
    transaction.free(run);
    transaction.erase({kDataObject, 1, 0});
    return {};
  }));
  volume.disk(1).add(failing(Op::kFlush));
  ASSERT_OK(volume.store().commit());
  EXPECT_FALSE(volume.store().is_free(run));
  ASSERT_OK(volume.put(3));
  ASSERT_OK(volume.store().commit());
  EXPECT_TRUE(volume.store().is_free(run));
}

// ---- a cut after a disk has failed

// Runs commits while a disk fails from its n-th request on, and cuts the power everywhere. "acknowledged" marks say
// what had been promised.
struct Outcome {
  bool struck = false;
  bool marked = false;
  std::uint64_t states = 0;
};

Outcome cut_everywhere(std::size_t disks, unsigned failed, Op op, FaultKind kind, std::uint64_t nth) {
  Outcome outcome;
  FailingVolume volume(disks, 7 + nth);
  volume.log().clear();
  const std::vector<const device::MemoryDisk*> bases = volume.bases();
  Disks base;
  for (const auto& disk : volume.disks()) base.push_back(disk->clone());
  volume.disk(failed).add({kind, op, 0, UINT64_MAX, nth, Fault::kSticky, 0});
  std::uint64_t data = 0;
  for (std::uint64_t n = 1; n <= 3; ++n) {
    const unsigned disk = static_cast<unsigned>(n % disks);
    if (volume.put_data(disk, n % 2, 100 + n).ok()) data = n;
    const bool changed = volume.put(n).ok();
    if (changed && volume.store().commit().ok()) volume.log().mark("acknowledged", data << 8 | n);
    if (n % 2 == 0 && volume.store().finalize().ok()) volume.log().mark("finalized", 0);
  }
  outcome.struck = !volume.disk(failed).injections().empty();
  outcome.marked = volume.store().disk_info(failed).is_out;
  const auto events = volume.log().events();
  std::vector<const device::MemoryDisk*> from;
  for (const auto& disk : base) from.push_back(disk.get());
  device::CutBounds bounds;
  bounds.all_subsets_up_to = 2;
  bounds.each_one_up_to = 2;
  bounds.samples = 2;
  bounds.seed = nth;
  bounds.torn = false;
  device::for_each_cut(from, events, bounds, [&](Disks cut_disks, const device::Cut& cut) {
    std::uint64_t promised = 0;
    for (std::size_t i = 0; i < cut.position; ++i)
      if (events[i].kind == device::EventKind::kMark && events[i].mark == "acknowledged") promised = events[i].value;
    const std::string text = std::to_string(disks) + " disks, " + device::op_name(op) + " " + std::to_string(nth) +
                             " of disk " + std::to_string(failed) + ", event " + std::to_string(cut.position) + ", " +
                             cut.text;
    for (const bool attached : {true, false}) {
      if (!attached && disks == 1) continue;
      const Disks given = attached ? clone_disks(cut_disks) : without(cut_disks, failed);
      ++outcome.states;
      SeededEnvironment environment(9);
      auto store = open_disks(given, environment);
      EXPECT_TRUE(store.ok()) << text << ": " << store.error().message();
      if (!store.ok()) return false;
      const bool out = (*store)->disk_info(failed).is_out;
      const bool writable = attached || out;
      EXPECT_FALSE(writable && (*store)->read_only()) << text << ": " << (*store)->read_only_reason();
      const auto value = value_in(**store);
      EXPECT_TRUE(value && *value >= (promised & 0xff)) << text << (attached ? ": attached" : ": absent");
      // The data of the commit that is there, as far as its disk is.
      for (std::uint64_t number = 0; number < 2 && value; ++number) {
        const auto item = (*store)->get({kDataObject, 1, number});
        EXPECT_OK(item);
        if (!item.ok() || !*item) continue;
        const bool there = attached || load_le<std::uint64_t>(**item, 0) != failed;
        EXPECT_TRUE(!there || data_in(**store, number) != 0) << text << (attached ? ": attached" : ": absent");
      }
      if ((*store)->read_only()) continue;
      const auto more = [&](Transaction& transaction) -> Status {
        transaction.put(item_key(1), value_of(100, 1));
        return {};
      };
      EXPECT_OK((*store)->transact(Purpose::kNormal, more));
      EXPECT_OK((*store)->commit());
      store->reset();
      EXPECT_OK(open_disks(given, environment)) << text;
    }
    return !testing::Test::HasFailure();
  });
  return outcome;
}

TEST(FailingDiskCrashTest, WhateverWasAcknowledgedOutlivesAFailingDiskAndACut) {
  std::uint64_t states = 0, marked = 0, cases = 0;
  for (const std::size_t disks : {2u, 3u, 4u})
    for (const auto& [op, kind] : {std::pair(Op::kFlush, FaultKind::kError), std::pair(Op::kWrite, FaultKind::kError),
                                   std::pair(Op::kWrite, FaultKind::kGone)})
      for (std::uint64_t nth = 0;; ++nth) {
        const Outcome outcome = cut_everywhere(disks, static_cast<unsigned>(nth % disks), op, kind, nth / disks);
        states += outcome.states;
        marked += outcome.marked;
        ++cases;
        if (testing::Test::HasFailure()) return;
        if (!outcome.struck) break;
      }
  EXPECT_GT(marked, 20u);
  test::tried("{} failing requests, {} states after a cut, {} times a disk was marked", cases, states, marked);
}

}  // namespace
}  // namespace mdfs::store
