// Readers, writers and committers at work together.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "store_fixture.h"

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

TEST(ConcurrencyTest, CommittersShareCommits) {
  SeededEnvironment environment(5);
  const Disks disks = make_disks(1, 16u << 20);
  ASSERT_OK(format_disks(disks, environment));
  auto opened = open_disks(disks, environment);
  ASSERT_OK(opened);
  Store& store = **opened;
  constexpr std::uint64_t kThreads = 8;
  constexpr std::uint64_t kRounds = 50;
  const std::uint64_t before = store.generation();
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kRounds; ++i) {
        const auto change = [&](Transaction& transaction) -> Status {
          transaction.put({20 + t, 1, i}, value_of(10, i));
          return {};
        };
        EXPECT_OK(store.transact(Purpose::kNormal, change));
        EXPECT_OK(store.commit());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(store.dirty());
  EXPECT_LE(store.generation() - before, kThreads * kRounds);
  EXPECT_EQ(read_all(store).size(), kThreads * kRounds);
}

}  // namespace
}  // namespace mdfs::store
