// Readers, writers and committers at work together.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "gate_disk.h"
#include "store_fixture.h"
#include "tried.h"

namespace mdfs::store {
namespace {

// Every transaction writes the same number to all keys of its group; a scan must see one number only.
TEST(ConcurrencyTest, ScansSeeEachTransactionWholeOrNotAtAllBesideCommits) {
  SeededEnvironment environment(5);
  const Disks disks = make_disks(2, 32u << 20);
  ASSERT_OK(format_disks(disks, environment));
  StoreOptions options;
  options.node_cache_bytes = 200u << 10;
  options.dirty_node_limit = 40;
  auto opened = open_disks(disks, environment, options);
  ASSERT_OK(opened);
  Store& store = **opened;
  constexpr std::uint64_t kGroups = 2;
  constexpr std::uint64_t kKeys = 120;
  constexpr std::uint64_t kRounds = 60;
  std::atomic<bool> stop{false};
  const auto write = [&](std::uint64_t group) {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      const auto change = [&](Transaction& transaction) -> Status {
        for (std::uint64_t i = 0; i < kKeys; ++i)
          transaction.put({20 + group, 1, i * i}, value_of(100 + (round * 13 + i) % 900, round));
        return {};
      };
      EXPECT_OK(store.transact(Purpose::kNormal, change));
      if (round % 8 == 0) {
        EXPECT_OK(store.commit());
      }
    }
  };
  const auto read = [&] {
    while (!stop) {
      for (std::uint64_t group = 0; group < kGroups; ++group) {
        const auto items = store.scan({20 + group, 1, 0}, {20 + group, 1, UINT64_MAX}, SIZE_MAX);
        ASSERT_OK(items);
        if (items->empty()) continue;
        ASSERT_EQ(items->size(), kKeys);
        for (std::size_t i = 0; i < kKeys; ++i) ASSERT_EQ((*items)[i].value[0], (*items)[0].value[0]);
        const auto one = store.get({20 + group, 1, 25});
        ASSERT_OK(one);
        ASSERT_TRUE(one->has_value());
      }
    }
  };
  const auto allocate = [&] {
    while (!stop) {
      AllocationRequest request;
      request.disk = 1;
      request.blocks = 3;
      request.owner = 50;
      const auto run = store.allocate(request, nullptr);
      if (run.ok()) store.abandon(*run);
      (void)store.space();
      (void)store.dirty();
    }
  };
  std::vector<std::thread> helpers;
  helpers.emplace_back(read);
  helpers.emplace_back(read);
  helpers.emplace_back(allocate);
  std::vector<std::thread> writers;
  for (std::uint64_t group = 0; group < kGroups; ++group) writers.emplace_back(write, group);
  for (std::thread& thread : writers) thread.join();
  stop = true;
  for (std::thread& thread : helpers) thread.join();
  EXPECT_OK(store.commit());
  opened->reset();
  auto again = open_disks(disks, environment);
  ASSERT_OK(again);
  EXPECT_EQ(read_all(**again).size(), kGroups * kKeys);
}

// With `gate` in the place of the first disk.
Result<std::unique_ptr<Store>> open_behind(test::GateDisk& gate, const Disks& disks, SeededEnvironment& environment) {
  std::vector<std::unique_ptr<device::Disk>> doors;
  doors.push_back(std::make_unique<BorrowedDisk>(gate));
  for (std::size_t i = 1; i < disks.size(); ++i) doors.push_back(std::make_unique<BorrowedDisk>(*disks[i]));
  return Store::open(std::move(doors), {}, environment);
}

// While the first commit of a round waits for its disk, all others make their changes: the next commit is for all of
// them. So two a round, however the threads take turns; a store that takes turns for its commits needs a hundred, and
// one that stops all writers meanwhile never gets that far.
TEST(ConcurrencyTest, AHundredCommittersShareTwoCommits) {
  constexpr unsigned kThreads = 100;
  constexpr unsigned kRounds = 6;
  SeededEnvironment environment(5);
  const Disks disks = make_disks(2, 16u << 20);
  ASSERT_OK(format_disks(disks, environment));
  test::GateDisk gate(*disks[0]);
  auto opened = open_behind(gate, disks, environment);
  ASSERT_OK(opened);
  Store& store = **opened;
  ASSERT_OK(store.commit());
  std::uint64_t most = 0;
  for (unsigned round = 0; round < kRounds; ++round) {
    const std::uint64_t before = store.generation();
    gate.close_for(store, kThreads - 1);
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&, thread] {
        const auto change = [&](Transaction& transaction) -> Status {
          transaction.put({20 + thread, 1, round}, value_of(10, round));
          return {};
        };
        EXPECT_OK(store.transact(Purpose::kNormal, change));
        EXPECT_OK(store.commit());
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(gate.opened_in_time()) << "writers stop while a commit waits for its disk";
    EXPECT_FALSE(store.dirty());
    const std::uint64_t commits = store.generation() - before;
    EXPECT_GE(commits, 1u);
    EXPECT_LE(commits, 2u) << "round " << round;
    most = std::max(most, commits);
    // What has returned is on the disks.
    SeededEnvironment other(6);
    const Disks clones = clone_disks(disks);
    auto cut = open_disks(clones, other);
    ASSERT_OK(cut);
    EXPECT_EQ(read_all(**cut).size(), (round + 1) * kThreads);
  }
  test::tried("{} calls of commit() by {} threads at once, {} commits for {} of them at most", kThreads * kRounds,
              kThreads, most, kThreads);
}

// The block is free after another commit. All ask for one that begins after their call.
TEST(ConcurrencyTest, AHundredWhoWaitForFreedBlocksShareTwoCommits) {
  constexpr unsigned kThreads = 100;
  SeededEnvironment environment(5);
  const Disks disks = make_disks(1, 16u << 20);
  ASSERT_OK(format_disks(disks, environment));
  test::GateDisk gate(*disks[0]);
  auto opened = open_behind(gate, disks, environment);
  ASSERT_OK(opened);
  Store& store = **opened;
  AllocationRequest request;
  request.blocks = 1;
  request.owner = 50;
  const auto run = store.allocate(request, nullptr);
  ASSERT_TRUE(run.ok());
  const auto change = [&](const std::function<void(Transaction&)>& work) {
    EXPECT_OK(store.transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
      work(transaction);
      return {};
    }));
  };
  change([&](Transaction& transaction) { transaction.publish(*run); });
  ASSERT_OK(store.commit());
  change([&](Transaction& transaction) { transaction.free(*run); });
  ASSERT_OK(store.commit());
  EXPECT_FALSE(store.is_free(*run));
  const std::uint64_t before = store.generation();
  gate.close_for(store, kThreads - 1);
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread) threads.emplace_back([&] { EXPECT_OK(store.commit_freed()); });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(gate.opened_in_time());
  EXPECT_TRUE(store.is_free(*run));
  EXPECT_LE(store.generation() - before, 2u);
}

}  // namespace
}  // namespace mdfs::store
