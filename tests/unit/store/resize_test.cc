// Disks that are given another size, with power cuts at every point.
// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"
#include "crash_workload.h"
#include "device/disk_counters.h"
#include "format/operation.h"
#include "store/verifier.h"
#include "tried.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kBlock = 4096, kUnit = MDFS_LABEL_AREA / kBlock;
constexpr std::uint64_t kBlocks = kDiskBytes / kBlock;

// Everything off what lies behind the new end, then the new size.
void cut_to(Workload& workload, unsigned disk, std::uint64_t blocks) {
  Store& store = workload.store();
  ASSERT_OK(store.set_disk_end(disk, blocks, nullptr));
  workload.move_data_off(disk);
  ASSERT_NO_FATAL_FAILURE(move_all_nodes_off(store, disk));
  ASSERT_OK(store.commit());
  ASSERT_OK(store.resize_disk(disk, blocks));
}

void resize_to(Workload& workload, unsigned disk, std::uint64_t blocks) {
  if (blocks < workload.store().disk_info(disk).blocks)
    cut_to(workload, disk, blocks);
  else
    ASSERT_OK(workload.store().resize_disk(disk, blocks));
}

TEST(ResizeTest, ALargerDiskHasMoreRoomNowAndAfterAnotherMount) {
  Workload workload(2, 3, 0, 16 * kDiskBytes);
  Store& store = workload.store();
  workload.run(2, 3);
  const SizeRange range = store.size_range(1).value();
  EXPECT_EQ(range.most_blocks, 16 * kBlocks);
  EXPECT_EQ(range.room_blocks, 16 * kBlocks);
  const std::uint64_t before = store.space().total_blocks;
  ASSERT_OK(store.resize_disk(1, 16 * kBlocks));
  EXPECT_EQ(store.disk_info(1).blocks, 16 * kBlocks);
  EXPECT_EQ(store.space().total_blocks, before + 15 * kBlocks);
  workload.run(2, 3);
  const alloc::Run run = store.allocate({.disk = 1, .blocks = 3000, .owner = 16}, nullptr).value();
  EXPECT_EQ(run.disk, 1) << "more than the whole disk had before";
  store.abandon(run);
  ASSERT_OK(store.commit());
  const std::uint64_t free = store.space().free_blocks;
  workload.close();
  expect_structure_is_sound(workload.disks(), true, "grown");
  SeededEnvironment environment(5);
  auto again = open_disks(workload.disks(), environment);
  ASSERT_OK(again);
  EXPECT_EQ((*again)->disk_info(1).blocks, 16 * kBlocks);
  EXPECT_EQ((*again)->space().free_blocks, free);
  EXPECT_TRUE(read_all(**again) == workload.states().back());
}

TEST(ResizeTest, ASmallerDiskKeepsEverythingAndNeedsTheRestOfTheDeviceNoMore) {
  Workload workload(1, 4, 0, 16 * kDiskBytes);
  ASSERT_OK(workload.store().resize_disk(0, 16 * kBlocks));
  workload.run(6, 8);
  cut_to(workload, 0, 2 * kBlocks);
  EXPECT_EQ(workload.store().disk_info(0).blocks, 2 * kBlocks);
  workload.run(2, 3);
  ASSERT_OK(workload.store().commit());
  const Model contents = workload.states().back();
  workload.close();
  workload.disks()[0]->resize(2 * kDiskBytes);
  expect_structure_is_sound(workload.disks(), true, "cut");
  expect_recovers(workload.disks(), {contents}, 0, "cut");
}

// All that a scrub asks of the store.
void verify_all(Store& store, format::OperationRecord& record) {
  Verifier& verifier = *store.verifier();
  record.disks.resize(store.disk_count());
  for (unsigned disk = 0; disk < store.disk_count(); ++disk) {
    ASSERT_OK(verifier.verify_labels(disk, true, record));
    ASSERT_OK(verifier.verify_space(disk, 0, verifier.space_pages(disk), true, record));
  }
  for (std::optional<Key> next = format::kMinKey; next;) {
    auto found = verifier.verify_nodes(*next, true, record);
    ASSERT_OK(found);
    next = *found;
  }
}

TEST(ResizeTest, AScrubReadsNothingBehindTheNewEndOfADiskThatWasCutOffThere) {
  Workload workload(2, 8, 0, 4 * kDiskBytes);
  Store& store = workload.store();
  ASSERT_OK(store.resize_disk(0, 4 * kBlocks));
  workload.run(4, 6);
  cut_to(workload, 0, 2 * kBlocks);
  workload.disks()[0]->resize(2 * kDiskBytes);
  format::OperationRecord record;
  verify_all(store, record);
  EXPECT_TRUE(record.errors.empty());
  EXPECT_EQ(record.items_changed, 0u);
  EXPECT_EQ(store.counters(0)->read_errors, 0u);
  EXPECT_EQ(store.counters(0)->checksum_errors, 0u);
}

TEST(ResizeTest, WhatMakesNoSenseIsRefusedAndChangesNothing) {
  Workload workload(2, 5, 0, 3 * kDiskBytes);
  Store& store = workload.store();
  workload.run(1, 2);
  const auto refused = [&](unsigned disk, std::uint64_t blocks) {
    return store.resize_disk(disk, blocks).error().code;
  };
  EXPECT_EQ(refused(2, 2 * kBlocks), Errc::kInvalidArgument) << "there is no such disk";
  EXPECT_EQ(refused(0, 4 * kBlocks), Errc::kInvalidArgument) << "the device is smaller";
  EXPECT_EQ(refused(0, 17 * kBlocks), Errc::kInvalidArgument) << "the space pages have no room";
  EXPECT_EQ(refused(0, 2 * kBlocks + 1), Errc::kInvalidArgument) << "no whole label areas";
  EXPECT_EQ(refused(0, kBlocks + kUnit), Errc::kInvalidArgument) << "labels would lie on labels";
  EXPECT_EQ(refused(0, UINT64_MAX), Errc::kInvalidArgument);
  EXPECT_EQ(refused(0, 0), Errc::kInvalidArgument);
  EXPECT_EQ(store.size_range(0)->least_blocks, kBlocks);
  ASSERT_OK(store.resize_disk(0, 2 * kBlocks));
  const alloc::Run run = store.allocate({.disk = 0, .blocks = 1200, .owner = 16}, nullptr).value();
  ASSERT_EQ(run.disk, 0);
  ASSERT_OK(store.set_disk_end(0, kBlocks, nullptr));
  EXPECT_EQ(refused(0, kBlocks), Errc::kNotEmpty) << "somebody has blocks there";
  EXPECT_GT(store.used_behind_end(0), 0u);
  store.abandon(run);
  ASSERT_OK(store.set_disk_end(0, 2 * kBlocks, nullptr));
  EXPECT_EQ(store.used_behind_end(0), 0u);
  EXPECT_EQ(store.disk_info(0).blocks, 2 * kBlocks);
  workload.run(1, 2);
}

TEST(ResizeTest, ARefusedSizeOverwritesNothingWhereTheLabelsWouldHaveLain) {
  Workload workload(2, 5, 0, 3 * kDiskBytes);
  Store& store = workload.store();
  ASSERT_OK(store.resize_disk(0, 2 * kBlocks));
  const alloc::Run run = store.allocate({.disk = 0, .blocks = 1200, .owner = 16}, nullptr).value();
  ASSERT_EQ(run.disk, 0);
  ASSERT_LT(run.block, kBlocks - 2 * kUnit);
  ASSERT_GT(run.block + run.blocks, kBlocks);
  AlignedBuffer data(std::size_t{run.blocks} * kBlock), back(data.bytes().size());
  std::fill(data.bytes().begin(), data.bytes().end(), std::byte{0x5a});
  ASSERT_OK(device::write(store.disk(0), run.block * kBlock, data.bytes()));
  EXPECT_EQ(store.resize_disk(0, kBlocks).error().code, Errc::kNotEmpty) << "without set_disk_end()";
  ASSERT_OK(store.set_disk_end(0, kBlocks, nullptr));
  EXPECT_EQ(store.resize_disk(0, kBlocks).error().code, Errc::kNotEmpty);
  ASSERT_OK(device::read(store.disk(0), run.block * kBlock, back.bytes()));
  EXPECT_TRUE(std::ranges::equal(back.bytes(), data.bytes()));
  ASSERT_OK(store.set_disk_end(0, 2 * kBlocks, nullptr));
  store.abandon(run);
}

TEST(ResizeTest, WhatHasNoRoomElsewhereStaysAndTheSizeToo) {
  Workload workload(1, 6, 0, 4 * kDiskBytes);
  Store& store = workload.store();
  ASSERT_OK(store.resize_disk(0, 4 * kBlocks));
  std::vector<alloc::Run> runs;
  for (;;) {
    const auto run = store.allocate({.disk = 0, .blocks = 64, .owner = 16}, nullptr);
    if (!run.ok()) break;
    runs.push_back(*run);
  }
  std::uint64_t missing = 0;
  EXPECT_EQ(store.set_disk_end(0, 2 * kBlocks, &missing).error().code, Errc::kNoSpace);
  EXPECT_GT(missing, kBlocks);
  for (const alloc::Run& run : runs) store.abandon(run);
  workload.run(1, 2);
  EXPECT_EQ(store.disk_info(0).blocks, 4 * kBlocks);
}

// A commit from before the change is read with the size that the disk had then.
TEST(ResizeTest, AnOlderCommitIsReadWithTheSizeThatItGivesTheDisk) {
  Workload workload(1, 7, 0, 4 * kDiskBytes);
  workload.run(2, 3);
  ASSERT_OK(workload.store().commit());
  const Model contents = workload.states().back();
  ASSERT_OK(workload.store().resize_disk(0, 3 * kBlocks));
  workload.close();
  SeededEnvironment environment(5);
  StoreOptions options;
  options.read_only = true;
  options.rollback = 0;
  auto before = open_disks(clone_disks(workload.disks()), environment, options);
  auto disks = clone_disks(workload.disks());
  before = open_disks(disks, environment, options);
  ASSERT_OK(before);
  EXPECT_EQ((*before)->disk_info(0).blocks, kBlocks);
  EXPECT_TRUE(read_all(**before) == contents);
}

class ResizeCrashTest : public testing::TestWithParam<std::size_t> {};

TEST_P(ResizeCrashTest, EveryCutLeavesTheOldSizeOrTheNewAndLosesNothing) {
  Workload workload(GetParam(), 21, 0, 6 * kDiskBytes);
  workload.run(1, 2);
  resize_to(workload, 0, 2 * kBlocks);
  workload.run(1, 2);
  resize_to(workload, 0, 5 * kBlocks + 3 * kUnit);
  workload.run(1, 3);
  resize_to(workload, 0, 3 * kBlocks - kUnit);
  workload.run(1, 1);
  resize_to(workload, 0, 3 * kBlocks + kUnit);
  resize_to(workload, 0, kBlocks);
  workload.run(1, 2);
  ASSERT_FALSE(testing::Test::HasFailure());
  device::CutBounds bounds;
  bounds.all_subsets_up_to = 4;
  bounds.each_one_up_to = 8;
  bounds.samples = 4;
  const std::vector<device::Event> events = workload.events();
  std::size_t count = 0;
  const std::size_t visited =
      device::for_each_cut(workload.bases(), events, bounds, [&](Disks disks, const device::Cut& cut) {
        if (count++ % 8 == 0) expect_structure_is_sound(disks, false, cut.text);
        expect_recovers(disks, workload.states(), acknowledged_at(events, cut), cut.text);
        if (count % 8 == 0) expect_structure_is_sound(disks, true, cut.text + ", mounted");
        return !testing::Test::HasFailure();
      });
  EXPECT_GT(visited, 100u);
  test::tried("{} cuts while the size of a disk changed", visited);
}

INSTANTIATE_TEST_SUITE_P(Disks, ResizeCrashTest, testing::Values(1, 3));

// Random sizes one after the other, with data on the disk, beside a model of what is stored.
TEST(ResizeTest, AnyWayFromSizeToSizeKeepsWhatIsStored) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    std::mt19937_64 random(seed);
    // Half of them over several bitmap pages, in two and in three levels of pages, and close to the borders of pages.
    const bool pages = seed % 2 == 0;
    FormatOptions options;
    if (pages) options.room_bytes = seed % 4 == 0 ? 34ull << 30 : 1ull << 30;
    const std::uint64_t most = pages ? 5 * MDFS_BITS_PER_PAGE : 16 * kBlocks;
    const std::uint64_t least = pages ? 6 * kBlocks : kBlocks;
    Workload workload(1 + seed % 3, seed, 0, most * kBlock, options);
    for (int step = 0; step < 8; ++step) {
      workload.run(1, 4);
      std::uint64_t blocks = least + kUnit * (random() % ((most - least) / kUnit));
      if (pages && step % 2 == 0) blocks = (1 + random() % 4) * MDFS_BITS_PER_PAGE + kUnit * (random() % 5) - 2 * kUnit;
      const std::uint64_t now = workload.store().disk_info(0).blocks;
      if (std::max(now, blocks) - std::min(now, blocks) < 2 * kUnit) continue;
      resize_to(workload, 0, blocks);
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", from " << now << " to " << blocks;
    }
    ASSERT_OK(workload.store().commit());
    const Model contents = workload.states().back();
    workload.close();
    expect_structure_is_sound(workload.disks(), true, "at the end");
    expect_recovers(workload.disks(), {contents}, 0, "at the end");
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace mdfs::store
