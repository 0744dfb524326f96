// Disks that fail while another one fails, is drained, or is removed.
// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "failing_volume.h"

namespace mdfs::store {
namespace {

using device::Op;

const Status no_log_of_members = set_log_level("off");

Result<alloc::Run> allocate_on(Store& store, std::uint16_t disk) {
  return store.allocate({.disk = disk, .blocks = 1, .owner = 16}, nullptr);
}

// Disk 1 fails the first attempt, which a mark in the second one says; disk 3 fails when that one is finalized. A
// further commit marks disk 3, and disk 1 takes no part in it.
TEST(FailingMembersTest, ADiskThatFailsTheSecondAttemptIsMarkedByAnotherCommit) {
  FailingVolume volume(5);
  ASSERT_OK(volume.put(1));
  ASSERT_OK(volume.store().commit());
  ASSERT_OK(volume.store().finalize());
  const std::uint64_t before = volume.store().generation();
  volume.disk(1).add(failing(Op::kFlush));
  volume.disk(3).add(failing(Op::kFlush, 3));  // two attempts and a withdrawal before
  ASSERT_OK(volume.put(2));
  ASSERT_OK(volume.store().commit());
  EXPECT_EQ(volume.store().generation(), before + 3);
  EXPECT_FALSE(volume.store().read_only()) << volume.store().read_only_reason();
  for (unsigned i = 0; i < 5; ++i) EXPECT_EQ(volume.store().disk_info(i).is_out, i % 2 == 1) << i;
  ASSERT_OK(volume.put(3));
  ASSERT_OK(volume.store().commit());
  Disks rest = without(volume.disks(), 1);
  rest[3].reset();
  auto store = open_disks(rest, volume.environment());
  ASSERT_OK(store);
  EXPECT_FALSE((*store)->read_only()) << (*store)->read_only_reason();
  EXPECT_EQ(value_in(**store), 3u);
}

// Of two disks one is out, and the other one is being drained.
void leave_only_a_drained_disk(FailingVolume& volume) {
  ASSERT_OK(volume.put(1));
  ASSERT_OK(volume.store().commit());
  volume.disk(0).add(failing(Op::kFlush));
  ASSERT_OK(volume.store().set_draining(1, true, nullptr));
  ASSERT_TRUE(volume.store().disk_info(0).is_out);
}

// The only disk that can be written is being drained: it gets blocks, in this mount and in the next, until another one
// joins.
TEST(FailingMembersTest, ADrainedDiskGetsBlocksWhileItIsTheOnlyOneLeft) {
  FailingVolume volume(2);
  ASSERT_NO_FATAL_FAILURE(leave_only_a_drained_disk(volume));
  ASSERT_OK(volume.put(2));
  ASSERT_OK(volume.store().commit());
  const auto run = allocate_on(volume.store(), 0);
  ASSERT_OK(run);
  EXPECT_EQ(run->disk, 1u);
  const Disks rest = without(volume.disks(), 0);
  auto store = open_disks(rest, volume.environment());
  ASSERT_OK(store);
  EXPECT_EQ(value_in(**store), 2u);
  ASSERT_OK(allocate_on(**store, 1));
  device::MemoryDisk joined("joined", kSmallDisk);
  std::vector<JoiningDisk> all(1);
  all[0].disk = std::make_unique<BorrowedDisk>(joined);
  ASSERT_OK((*store)->add_disks(std::move(all)));
  const auto other = allocate_on(**store, 1);
  ASSERT_OK(other);
  EXPECT_EQ(other->disk, 2u);
  store->reset();
}

TEST(FailingMembersTest, TheLastDiskThatTakesPartInCommitsIsNotRemoved) {
  FailingVolume volume(2);
  ASSERT_NO_FATAL_FAILURE(leave_only_a_drained_disk(volume));
  const Status removed = volume.store().remove_disk(1);
  ASSERT_FALSE(removed.ok());
  EXPECT_EQ(removed.error().code, Errc::kInvalidArgument) << removed.error().message();
  EXPECT_FALSE(volume.store().read_only());
  ASSERT_OK(volume.put(2));
  ASSERT_OK(volume.store().commit());
  expect_value_without(volume, 0, 2);
}

// After a drain all nodes of the tree lie on the other disk. Without that disk there would be no volume.
TEST(FailingMembersTest, ADiskThatHoldsTheWholeTreeIsNotLeftOut) {
  FailingVolume volume(2);
  ASSERT_OK(volume.put(1));
  ASSERT_OK(volume.store().set_draining(1, true, nullptr));
  ASSERT_NO_FATAL_FAILURE(move_all_nodes_off(volume.store(), 1));
  ASSERT_OK(volume.store().commit());
  volume.disk(0).add(failing(Op::kFlush));
  const Status removed = volume.store().remove_disk(1);
  ASSERT_FALSE(removed.ok());
  EXPECT_EQ(removed.error().code, Errc::kIo) << removed.error().message();
  EXPECT_TRUE(volume.store().read_only());
  EXPECT_FALSE(volume.store().disk_info(0).is_out);
  auto store = open_disks(volume.disks(), volume.environment());
  ASSERT_OK(store);
  EXPECT_FALSE((*store)->read_only()) << (*store)->read_only_reason();
  EXPECT_EQ(value_in(**store), 1u);
}

// A disk that is out has no count of used blocks, and is no empty disk for that reason.
TEST(FailingMembersTest, ADiskThatFailsWhileItIsDrainedOrRemovedKeepsItsData) {
  for (const bool while_removed : {true, false}) {
    FailingVolume volume(3);
    ASSERT_OK(volume.put(1));
    for (unsigned disk = 0; disk < 3; ++disk) ASSERT_OK(volume.put_data(disk, disk, 10 + disk));
    ASSERT_OK(volume.store().commit());
    ASSERT_OK(volume.store().set_draining(1, true, nullptr));
    volume.disk(1).add(failing(Op::kFlush));
    if (!while_removed) {
      ASSERT_OK(volume.put(2));
      ASSERT_OK(volume.store().commit());
      ASSERT_TRUE(volume.store().disk_info(1).is_out);
    }
    const Status removed = volume.store().remove_disk(1);
    ASSERT_FALSE(removed.ok());
    EXPECT_EQ(removed.error().code, Errc::kNotEmpty) << removed.error().message();
    EXPECT_TRUE(volume.store().disk_info(1).is_out);
    EXPECT_EQ(data_in(volume.store(), 1), 11u);
    // The caller has moved all that the next walk finds.
    ASSERT_NO_FATAL_FAILURE(move_all_nodes_off(volume.store(), 1));
    ASSERT_OK(volume.put_data(0, 1, 21));
    ASSERT_OK(volume.store().remove_disk(1));
    EXPECT_EQ(volume.store().disk_info(1).state, DiskState::kNone);
    const Disks rest = without(volume.disks(), 1);
    auto store = open_disks(rest, volume.environment());
    ASSERT_OK(store);
    for (const std::uint64_t number : {0u, 2u}) EXPECT_EQ(data_in(**store, number), 10 + number);
    EXPECT_EQ(data_in(**store, 1), 21u);
  }
}

}  // namespace
}  // namespace mdfs::store
