// The commit before the newest stays readable, whatever a mount writes before it commits.
// SPDX-License-Identifier: Apache-2.0
#include "crash_workload.h"
#include "tried.h"

namespace mdfs::store {
namespace {

class FallbackTest : public testing::TestWithParam<std::size_t> {};

std::vector<std::unique_ptr<device::Disk>> recorders_of(const Disks& disks, device::RecorderLog& log) {
  std::vector<std::unique_ptr<device::Disk>> recorders;
  for (std::size_t i = 0; i < disks.size(); ++i)
    recorders.push_back(std::make_unique<device::RecorderDisk>(*disks[i], log, static_cast<std::uint32_t>(i)));
  return recorders;
}

// The newest commit and the one before it are whole: their items, and the data that these name.
void expect_two_commits(const Disks& disks, const std::vector<Model>& states, const std::string& text) {
  SeededEnvironment environment(98);
  for (const bool older : {false, true}) {
    StoreOptions options;
    options.read_only = true;
    if (older) options.rollback = 0;
    auto store = open_disks(disks, environment, options);
    ASSERT_TRUE(store.ok()) << text << ": " << store.error().message();
    auto items = (*store)->scan({MDFS_OBJECT_FIRST, 0, 0}, format::kMaxKey, SIZE_MAX);
    ASSERT_TRUE(items.ok()) << text << (older ? ", the older commit: " : ": ") << items.error().message();
    Model found;
    for (Item& item : *items) found[item.key] = std::move(item.value);
    ASSERT_TRUE(std::find(states.begin(), states.end(), found) != states.end()) << text << ": no state";
    expect_data_intact(**store, found, text + (older ? ", the older commit" : ""));
  }
}

// Writes garbage to every block that the store gives out, and returns them all.
void spoil_free_blocks(Store& store, const Disks& disks) {
  std::vector<Run> runs;
  for (std::uint16_t disk = 0; disk < disks.size(); ++disk)
    for (std::uint32_t blocks = 64; blocks > 0; blocks /= 4) {
      AllocationRequest request;
      request.disk = disk;
      request.blocks = blocks;
      request.owner = 16;
      request.may_fall_back = false;
      for (auto run = store.allocate(request, nullptr); run.ok(); run = store.allocate(request, nullptr)) {
        disks[disk]->poke(run->block * 4096, ByteVector(run->blocks * std::size_t{4096}, std::byte{0xe5}));
        runs.push_back(*run);
      }
    }
  ASSERT_FALSE(runs.empty());
  for (const Run& run : runs) store.abandon(run);
}

// Mounts the disks, and looks at both commits when free blocks have been spoiled, and in the middle of the commit.
std::size_t mount_and_write(const Disks& disks, std::vector<Model> states, const std::string& text) {
  SeededEnvironment environment(3);
  device::RecorderLog log;
  auto store = Store::open(recorders_of(disks, log), {}, environment);
  EXPECT_OK(store);
  if (!store.ok()) return 0;
  spoil_free_blocks(**store, disks);
  expect_two_commits(disks, states, text + ", before the next commit");
  log.clear();
  const Disks before = clone_disks(disks);
  std::vector<const device::MemoryDisk*> bases;
  for (const auto& disk : before) bases.push_back(disk.get());
  for (std::uint64_t i = 0; i < 2; ++i) {
    states.push_back(read_all(**store));
    states.back()[item_key(9)] = value_of(500, i);
    EXPECT_OK((*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
      transaction.put(item_key(9), value_of(500, i));
      return {};
    }));
    EXPECT_OK((*store)->commit());
  }
  device::CutBounds bounds;
  bounds.all_subsets_up_to = 0;
  bounds.each_one_up_to = 4;
  bounds.samples = 2;
  bounds.torn = false;
  return device::for_each_cut(bases, log.events(), bounds, [&](Disks cut_disks, const device::Cut& cut) {
    expect_two_commits(cut_disks, states, text + ", then " + cut.text);
    return !testing::Test::HasFailure();
  });
}

TEST_P(FallbackTest, WhatAMountWritesLeavesTheCommitBeforeTheOneItFoundWhole) {
  std::size_t cuts = 0;
  for (std::uint64_t seed = 1; seed <= 8 && !HasFailure(); ++seed) {
    Workload workload(GetParam(), seed);
    workload.run(6, 3);
    workload.close();
    cuts += mount_and_write(workload.disks(), workload.states(), "seed " + std::to_string(seed));
  }
  EXPECT_GT(cuts, 40u);
  test::tried("{} cuts of the first commits of a mount on {} disks", cuts, GetParam());
}

TEST_P(FallbackTest, WhatAMountAfterACutWritesLeavesTheCommitBeforeTheOneItFoundWhole) {
  Workload workload(GetParam(), 9);
  workload.run(4, 2);
  const std::vector<device::Event> events = workload.events();
  device::CutBounds bounds;
  const auto second = [&](const device::Event& event) {
    return event.kind == device::EventKind::kMark && event.value >= 4;
  };
  const auto from = std::find_if(events.begin(), events.end(), second);
  bounds.from = static_cast<std::size_t>(from - events.begin());
  bounds.all_subsets_up_to = 2;
  bounds.each_one_up_to = 3;
  bounds.samples = 2;
  bounds.torn = false;
  std::size_t cuts = 0;
  const std::size_t mounts =
      device::for_each_cut(workload.bases(), events, bounds, [&](Disks disks, const device::Cut& cut) {
        expect_two_commits(disks, workload.states(), cut.text);
        cuts += mount_and_write(disks, workload.states(), cut.text);
        return !testing::Test::HasFailure();
      });
  EXPECT_GT(mounts, 20u);
  test::tried("{} cuts of the first commits of {} mounts on {} disks", cuts, mounts, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Disks, FallbackTest, testing::Values(1, 2, 3));

}  // namespace
}  // namespace mdfs::store
