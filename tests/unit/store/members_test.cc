// Disks that come, go and change their weight, with power cuts at every point.
// SPDX-License-Identifier: Apache-2.0
#include "crash_workload.h"
#include "tried.h"

namespace mdfs::store {
namespace {

Result<std::vector<unsigned>> add(Workload& workload, std::initializer_list<std::size_t> disks) {
  std::vector<JoiningDisk> joining;
  for (const std::size_t disk : disks) joining.push_back({workload.recorder(disk), 2});
  return workload.store().add_disks(std::move(joining));
}

// Everything off the disk, and the disk out of the volume.
void take_out(Workload& workload, unsigned disk) {
  Store& store = workload.store();
  ASSERT_OK(store.set_draining(disk, true, nullptr));
  EXPECT_EQ(store.disk_info(disk).state, DiskState::kDraining);
  workload.move_data_off(disk);
  ASSERT_NO_FATAL_FAILURE(move_all_nodes_off(store, disk));
  ASSERT_OK(store.commit());
  ASSERT_OK(store.remove_disk(disk));
  EXPECT_EQ(store.disk_info(disk).state, DiskState::kNone);
}

TEST(MembersTest, DisksComeAndGoWhileTheStoreWorks) {
  Workload workload(2, 3, 2);
  Store& store = workload.store();
  workload.run(2, 3);
  const std::uint64_t before = store.space().total_blocks;
  EXPECT_EQ(add(workload, {2, 3}).value(), (std::vector<unsigned>{2, 3}));
  EXPECT_EQ(store.disk_count(), 4u);
  EXPECT_EQ(store.space().total_blocks, 2 * before);
  EXPECT_EQ(store.disk_info(3).weight, 2);
  workload.run(2, 3);
  EXPECT_LT(store.disk_info(2).free_blocks, store.disk_info(2).blocks - 64) << "new blocks go there at once";
  ASSERT_OK(store.set_weight(0, 5));
  EXPECT_EQ(store.disk_info(0).weight, 5);
  take_out(workload, 1);
  EXPECT_EQ(store.disk_count(), 4u) << "no disk gets another number";
  workload.run(2, 3);
  EXPECT_EQ(add(workload, {1}).value(), std::vector<unsigned>{1}) << "the hole is filled";
  workload.run(2, 3);
}

TEST(MembersTest, WhatMakesNoSenseIsRefusedAndChangesNothing) {
  Workload workload(2, 4, 1);
  Store& store = workload.store();
  workload.run(1, 2);
  EXPECT_EQ(store.set_weight(2, 1).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(store.set_weight(0, 0).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(store.remove_disk(0).error().code, Errc::kInvalidArgument) << "it is not being drained";
  EXPECT_FALSE(store.add_disks({}).ok());
  std::vector<JoiningDisk> tiny;
  tiny.push_back({std::make_unique<device::MemoryDisk>("tiny", 1u << 20), 1});
  EXPECT_FALSE(store.add_disks(std::move(tiny)).ok());
  ASSERT_OK(store.set_draining(0, true, nullptr));
  EXPECT_EQ(store.remove_disk(0).error().code, Errc::kNotEmpty);
  std::uint64_t missing = 0;
  EXPECT_EQ(store.set_draining(1, true, &missing).error().code, Errc::kNoSpace);
  EXPECT_GT(missing, 0u);
  ASSERT_OK(store.set_draining(0, false, nullptr));
  EXPECT_EQ(store.disk_info(0).state, DiskState::kHealthy);
  workload.run(1, 2);
}

// After a cut a disk that was being added can be given again, and one that was being drained leaves for good.
void expect_members_can_change(const Disks& disks, const std::string& text) {
  SeededEnvironment environment(17);
  auto store = open_labelled(disks, environment);
  ASSERT_OK(store);
  for (const auto& disk : disks) {
    bool member = false;
    for (unsigned i = 0; i < (*store)->disk_count(); ++i) member |= (*store)->disk_info(i).name == disk->name();
    if (member) continue;
    std::vector<JoiningDisk> joining;
    joining.push_back({std::make_unique<BorrowedDisk>(*disk), 1});
    ASSERT_OK((*store)->add_disks(std::move(joining))) << text;
  }
  for (unsigned i = 0; i < (*store)->disk_count(); ++i) {
    const DiskState state = (*store)->disk_info(i).state;
    EXPECT_TRUE(state == DiskState::kHealthy || state == DiskState::kDraining) << text << ": disk " << i;
  }
  store->reset();
  expect_structure_is_sound(disks, true, text);
}

// Two disks come, one after the other, and the first one goes; `first_new` is the number of disks before that.
void change_members(Workload& workload, std::size_t first_new) {
  workload.run(1, 2);
  ASSERT_OK(add(workload, {first_new}));
  workload.run(1, 2);
  ASSERT_OK(add(workload, {first_new + 1}));
  ASSERT_OK(workload.store().set_weight(static_cast<unsigned>(first_new), 3));
  workload.run(1, 1);
  take_out(workload, 0);
  workload.run(1, 2);
}

class MembersCrashTest : public testing::TestWithParam<std::size_t> {};

TEST_P(MembersCrashTest, EveryCutLeavesTheOldMembersOrTheNewAndLosesNothing) {
  Workload workload(GetParam(), 11, 2);
  ASSERT_NO_FATAL_FAILURE(change_members(workload, GetParam()));
  ASSERT_FALSE(testing::Test::HasFailure());
  device::CutBounds bounds;
  bounds.all_subsets_up_to = 4;
  bounds.each_one_up_to = 8;
  bounds.samples = 4;
  const std::vector<device::Event> events = workload.events();
  std::size_t count = 0;
  const std::size_t visited =
      device::for_each_cut(workload.bases(), events, bounds, [&](Disks disks, const device::Cut& cut) {
        if (count++ % 8 == 0) {
          expect_structure_is_sound(disks, false, cut.text);
          expect_members_can_change(clone_disks(disks), cut.text);
        }
        expect_recovers(disks, workload.states(), acknowledged_at(events, cut), cut.text);
        return !testing::Test::HasFailure();
      });
  EXPECT_GT(visited, 100u);
  test::tried("{} cuts while disks came and went", visited);
}

// What a mount finds: contents, members, and whether it may write.
struct Found {
  bool read_only = false;
  std::vector<std::pair<std::string, DiskState>> disks;
  Model contents;
  bool operator==(const Found&) const = default;
};

Result<Found> find(const Disks& disks, const StoreOptions& options) {
  std::vector<std::unique_ptr<device::Disk>> labelled;
  for (const auto& disk : disks)
    if (disk && read_labels(*disk).label) labelled.push_back(std::make_unique<BorrowedDisk>(*disk));
  SeededEnvironment environment(31);
  MDFS_TRY_ASSIGN(const auto store, Store::open(std::move(labelled), options, environment));
  Found found{store->read_only(), {}, read_all(*store)};
  for (unsigned i = 0; i < store->disk_count(); ++i)
    found.disks.emplace_back(store->disk_info(i).name, store->disk_info(i).state);
  return found;
}

// After a cut one disk is away from a mount that only reads, then all are there again: as if it had not been away.
TEST_P(MembersCrashTest, AMountThatOnlyReadsWithoutADiskLeavesNoDiskStale) {
  Workload workload(GetParam() + 1, 12, 2);
  ASSERT_NO_FATAL_FAILURE(change_members(workload, GetParam() + 1));
  ASSERT_FALSE(testing::Test::HasFailure());
  device::CutBounds bounds;
  bounds.all_subsets_up_to = 0;
  bounds.each_one_up_to = 4;
  bounds.samples = 1;
  bounds.torn = false;
  std::size_t cuts = 0, mounts = 0;
  device::for_each_cut(workload.bases(), workload.events(), bounds, [&](Disks disks, const device::Cut& cut) {
    if (cuts++ % 8 != 0) return true;
    const auto at_once = find(clone_disks(disks), {});
    EXPECT_OK(at_once);
    if (!at_once.ok()) return false;
    for (std::size_t away = 0; away < disks.size(); ++away) {
      Disks others = clone_disks(disks);
      others[away].reset();
      StoreOptions options;
      options.degraded = mounts % 2 == 0;
      if (find(others, options).ok()) ++mounts;
      others[away] = disks[away]->clone();
      const auto again = find(others, {});
      EXPECT_OK(again);
      EXPECT_TRUE(again.ok() && *again == *at_once)
          << cut.text << ", disk " << away << " away" << (options.degraded ? ", degraded" : "");
      if (testing::Test::HasFailure()) return false;
    }
    return true;
  });
  EXPECT_GT(mounts, 100u);
  test::tried("{} mounts without a disk that only read, after cuts while disks came and went", mounts);
}

INSTANTIATE_TEST_SUITE_P(Disks, MembersCrashTest, testing::Values(1, 3));

// The disk was away while others came and went: stale, and never merged.
TEST(MembersTest, ADiskThatWasAwayWhileMembersChangedIsStale) {
  SeededEnvironment environment(5);
  const Disks disks = make_disks(4, kDiskBytes);
  {
    std::vector<device::Disk*> three = {disks[0].get(), disks[1].get(), disks[2].get()};
    ASSERT_OK(format_volume(three, {}, environment));
  }
  {
    std::vector<std::unique_ptr<device::Disk>> two;
    for (const std::size_t i : {0u, 1u}) two.push_back(std::make_unique<BorrowedDisk>(*disks[i]));
    auto store = Store::open(std::move(two), {}, environment);
    ASSERT_OK(store);
    std::vector<JoiningDisk> joining;
    joining.push_back({std::make_unique<BorrowedDisk>(*disks[3]), 1});
    ASSERT_OK((*store)->add_disks(std::move(joining)));
  }
  auto store = open_labelled(disks, environment);
  ASSERT_OK(store);
  EXPECT_EQ((*store)->disk_count(), 4u);
  EXPECT_EQ((*store)->disk_info(2).state, DiskState::kStale);
  EXPECT_EQ((*store)->disk_info(3).state, DiskState::kHealthy);
}

// Two disks; the first is away while the second is replaced by a third. No disk of the newest commit of the first one
// is left, yet the third knows that commit.
class ReplacedMeanwhile {
 public:
  ReplacedMeanwhile() {
    std::vector<device::Disk*> two = {disks_[0].get(), disks_[1].get()};
    EXPECT_OK(format_volume(two, {}, environment_));
    put({0, 1}, 1);
  }

  // On these disks, and finalized.
  void put(std::initializer_list<std::size_t> here, std::uint64_t value) {
    auto store = open(here);
    ASSERT_OK(store);
    ASSERT_OK((*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
      transaction.put({20, 1, 0}, value_of(16, value));
      return {};
    }));
    ASSERT_OK((*store)->commit());
    ASSERT_OK((*store)->finalize());
  }

  void replace_the_second() {
    auto store = open({1});
    ASSERT_OK(store);
    std::vector<JoiningDisk> joining;
    joining.push_back({std::make_unique<BorrowedDisk>(*disks_[2]), 1});
    ASSERT_OK((*store)->add_disks(std::move(joining)));
    ASSERT_OK((*store)->set_draining(1, true, nullptr));
    ASSERT_NO_FATAL_FAILURE(move_all_nodes_off(**store, 1));
    ASSERT_OK((*store)->commit());
    ASSERT_OK((*store)->remove_disk(1));
  }

  Result<std::unique_ptr<Store>> open(std::initializer_list<std::size_t> here) {
    std::vector<std::unique_ptr<device::Disk>> borrowed;
    for (const std::size_t i : here) borrowed.push_back(std::make_unique<BorrowedDisk>(*disks_[i]));
    StoreOptions options;
    options.degraded = true;
    return Store::open(std::move(borrowed), options, environment_);
  }

 private:
  SeededEnvironment environment_{6};
  Disks disks_ = make_disks(3, kDiskBytes);
};

TEST(MembersTest, ADiskIsBehindThoughNoDiskOfItsNewestCommitIsLeft) {
  ReplacedMeanwhile volume;
  volume.replace_the_second();
  for (int i = 0; i < 6; ++i) volume.put({2}, 10);
  const auto store = volume.open({0, 2});
  ASSERT_OK(store);
  EXPECT_EQ((*store)->disk_info(0).state, DiskState::kStale);
  EXPECT_EQ((*store)->disk_info(2).state, DiskState::kHealthy);
}

TEST(MembersTest, ADiskThatWasWrittenApartMeanwhileIsRefused) {
  ReplacedMeanwhile volume;
  volume.replace_the_second();
  for (int i = 0; i < 6; ++i) volume.put({2}, 10);
  volume.put({0}, 20);
  const auto store = volume.open({0, 2});
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, Errc::kFork);
}

}  // namespace
}  // namespace mdfs::store
