// Blocks that wait for their readers.
// SPDX-License-Identifier: Apache-2.0
#include "store/held_blocks.h"

#include <gtest/gtest.h>

namespace mdfs::store {
namespace {

using Runs = std::vector<alloc::Run>;

TEST(HeldBlocks, BlocksWaitUntilTheirLastHoldEnds) {
  HeldBlocks held;
  const auto one = held.add({{0, 100, 4}, {1, 100, 4}});
  const auto two = held.add({{0, 100, 4}});
  Runs free = {{0, 96, 4}, {0, 100, 4}, {0, 104, 4}, {2, 100, 4}};
  held.keep_back(free);
  EXPECT_EQ(free, (Runs{{0, 96, 4}, {0, 104, 4}, {2, 100, 4}}));
  EXPECT_EQ(held.waiting_blocks(), 4u);
  EXPECT_TRUE(held.drop(*one).empty());
  EXPECT_EQ(held.drop(*two), (Runs{{0, 100, 4}}));
  EXPECT_EQ(held.waiting_blocks(), 0u);
  EXPECT_FALSE(two->broken);
}

TEST(HeldBlocks, APartOfAHeldRunWaitsToo) {
  HeldBlocks held;
  const auto hold = held.add({{0, 100, 10}});
  Runs free = {{0, 98, 3}, {0, 104, 2}, {0, 109, 5}, {0, 110, 1}};
  held.keep_back(free);
  EXPECT_EQ(free, (Runs{{0, 110, 1}}));
  EXPECT_EQ(held.waiting_blocks(), 10u);
  EXPECT_EQ(held.drop(*hold), (Runs{{0, 98, 3}, {0, 104, 2}, {0, 109, 5}}));
}

TEST(HeldBlocks, TheOldestHoldIsBrokenFirstAndDroppedWithoutHarm) {
  HeldBlocks held;
  const auto one = held.add({{0, 100, 4}});
  const auto two = held.add({{0, 200, 4}});
  Runs free = {{0, 100, 4}, {0, 200, 4}};
  held.keep_back(free);
  EXPECT_EQ(held.break_oldest(), (Runs{{0, 100, 4}}));
  EXPECT_TRUE(one->broken);
  EXPECT_FALSE(two->broken);
  EXPECT_TRUE(held.drop(*one).empty());
  EXPECT_EQ(held.waiting_blocks(), 4u);
  EXPECT_EQ(held.break_oldest(), (Runs{{0, 200, 4}}));
  EXPECT_TRUE(held.break_oldest().empty());
}

TEST(HeldBlocks, BlocksThatCannotWaitBreakTheHoldsOfThem) {
  HeldBlocks held;
  const auto one = held.add({{0, 100, 4}, {1, 100, 4}});
  const auto two = held.add({{1, 200, 4}});
  Runs free = {{0, 100, 4}};
  held.keep_back(free);
  Runs leaving = {{1, 100, 4}};
  held.break_those_of(leaving);
  EXPECT_EQ(leaving, (Runs{{1, 100, 4}, {0, 100, 4}}));
  EXPECT_TRUE(one->broken);
  EXPECT_FALSE(two->broken);
  EXPECT_EQ(held.waiting_blocks(), 0u);
}

}  // namespace
}  // namespace mdfs::store
