// What was freed a few commits ago.
// SPDX-License-Identifier: Apache-2.0
#include "store/recently_freed.h"

#include <gtest/gtest.h>

#include <vector>

#include "mdfs/ondisk.h"

namespace mdfs::store {
namespace {

using alloc::AvoidedRanges;
using Runs = std::vector<alloc::Run>;

Runs forget(RecentlyFreed& recent, std::uint64_t generation) {
  Runs runs;
  recent.forget(generation, [&](const alloc::Run& run) { runs.push_back(run); });
  return runs;
}

TEST(RecentlyFreedTest, BlocksThatWereFreedTwiceAreForgottenWithTheLaterCommit) {
  RecentlyFreed recent;
  ASSERT_TRUE(recent.add(5, Runs{{0, 100, 10}, {0, 200, 10}}));
  ASSERT_TRUE(recent.add(6, Runs{{0, 105, 20}}));
  EXPECT_EQ(recent.within(0, {0, 1000}), (AvoidedRanges{{100, 125}, {200, 210}}));
  EXPECT_EQ(recent.within(0, {110, 120}), (AvoidedRanges{{105, 125}}));
  EXPECT_TRUE(recent.within(1, {0, 1000}).empty());
  EXPECT_TRUE(forget(recent, 4).empty());
  EXPECT_EQ(forget(recent, 5), (Runs{{0, 100, 10}, {0, 200, 10}}));
  EXPECT_EQ(recent.within(0, {0, 1000}), (AvoidedRanges{{105, 125}}));
  EXPECT_EQ(forget(recent, 6).size(), 1u);
  EXPECT_TRUE(recent.empty());
}

TEST(RecentlyFreedTest, ADiskThatHasGoneLeavesNothing) {
  RecentlyFreed recent;
  ASSERT_TRUE(recent.add(5, Runs{{0, 100, 10}, {1, 100, 10}}));
  recent.forget_disk(0);
  EXPECT_TRUE(recent.within(0, {0, 1000}).empty());
  EXPECT_EQ(forget(recent, 5), (Runs{{1, 100, 10}}));
}

TEST(RecentlyFreedTest, TooManyRunsAreNotRememberedAndThatIsSaid) {
  RecentlyFreed recent;
  Runs runs;
  for (std::size_t i = 0; i < RecentlyFreed::kLimit; ++i) runs.push_back({0, 2 * i, 1});
  ASSERT_TRUE(recent.add(5, runs));
  EXPECT_FALSE(recent.add(6, Runs{{0, 1, 1}}));
  EXPECT_TRUE(recent.within(0, {1, 2}).empty());
  forget(recent, 5);
  EXPECT_TRUE(recent.add(7, Runs{{0, 1, 1}}));
}

}  // namespace
}  // namespace mdfs::store
