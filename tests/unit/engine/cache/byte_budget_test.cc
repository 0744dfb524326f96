// The bound on bytes at work.
// SPDX-License-Identifier: Apache-2.0
#include "engine/cache/byte_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace mdfs::engine {
namespace {

// The thread waits in the budget when this returns.
std::thread waiting_thread(ByteBudget& budget, std::size_t bytes, std::vector<std::size_t>& order) {
  const std::size_t before = budget.waiting();
  std::thread thread([&budget, bytes, &order] {
    const ByteBudget::Share share = budget.wait_for(bytes);
    order.push_back(bytes);  // one at a time in these tests
  });
  while (budget.waiting() == before) std::this_thread::yield();
  return thread;
}

TEST(ByteBudget, ASmallDemandDoesNotPassALargeOneThatWaits) {
  ByteBudget budget(100);
  std::vector<std::size_t> order;
  ByteBudget::Share held = budget.wait_for(60);
  std::thread large = waiting_thread(budget, 100, order);
  std::thread small = waiting_thread(budget, 99, order);
  EXPECT_FALSE(budget.try_for(10)) << "others wait";
  EXPECT_EQ(budget.used_bytes(), 60u);
  { const ByteBudget::Share gone = std::move(held); }
  large.join();
  small.join();
  EXPECT_EQ(order, (std::vector<std::size_t>{100, 99}));
}

TEST(ByteBudget, ADemandLargerThanTheLimitGetsItsTurnAlone) {
  ByteBudget budget(100);
  std::vector<std::size_t> order;
  ByteBudget::Share first = budget.wait_for(1);
  ByteBudget::Share second = budget.wait_for(1);
  std::thread large = waiting_thread(budget, 1000, order);
  { const ByteBudget::Share gone = std::move(first); }
  EXPECT_EQ(budget.waiting(), 1u);
  { const ByteBudget::Share gone = std::move(second); }
  large.join();
  EXPECT_EQ(order, (std::vector<std::size_t>{1000}));
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(ByteBudget, ADemandThatIsWithdrawnLetsTheOnesBehindItPass) {
  ByteBudget budget(100);
  std::vector<std::size_t> order;
  std::atomic<bool> withdrawn{false};
  const ByteBudget::Share held = budget.wait_for(60);
  std::thread large(
      [&] { EXPECT_FALSE(budget.wait_for(100, std::chrono::milliseconds(1), [&] { return withdrawn.load(); })); });
  while (budget.waiting() == 0) std::this_thread::yield();
  std::thread small = waiting_thread(budget, 40, order);
  withdrawn = true;
  large.join();
  small.join();
  EXPECT_EQ(order, (std::vector<std::size_t>{40}));
  EXPECT_EQ(budget.used_bytes(), 60u);
}

TEST(ByteBudget, ALargeDemandGetsItsTurnAmongThreadsThatNeverRest) {
  ByteBudget budget(100);
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> most{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      while (!stop) {
        const ByteBudget::Share share = budget.wait_for(40);
        const std::size_t used = budget.used_bytes();
        for (std::size_t known = most; known < used && !most.compare_exchange_weak(known, used);) {
        }
      }
    });
  for (int i = 0; i < 50; ++i) const ByteBudget::Share share = budget.wait_for(100);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 100u);
  budget.wait_until_idle();
}

}  // namespace
}  // namespace mdfs::engine
