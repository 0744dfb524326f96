// The bounds of the channels of a mount.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "fuse/channel_budget.h"

namespace mdfs::fuse {
namespace {

constexpr std::uint64_t kAsked = 16u << 20;

TEST(ChannelBudgetTest, TwoHundredClientsOfAUserFindRoomInTheSmallestBudget) {
  ChannelBudget budget(0);
  for (int i = 0; i < 200; ++i) EXPECT_GE(budget.take(1, kAsked), channel::kLeastAreaBytes) << i;
}

TEST(ChannelBudgetTest, OneUserGetsAtMostHalfAndAnotherOneFindsTheRest) {
  ChannelBudget budget(0);
  unsigned clients = 0;
  while (budget.take(1, kAsked) != 0) ++clients;
  EXPECT_LE(clients, ChannelBudget::kMostClientsOfUser);
  EXPECT_LE(budget.used_bytes(), ChannelBudget::kLeastBytes / 2);
  EXPECT_GT(budget.take(2, kAsked), 0u);
}

TEST(ChannelBudgetTest, WhatIsGivenBackCanBeTakenAgain) {
  ChannelBudget budget(std::uint64_t{1} << 40);
  std::vector<std::uint64_t> areas;
  for (std::uint64_t area = 0; (area = budget.take(1, UINT64_MAX)) != 0;) areas.push_back(area);
  EXPECT_EQ(areas.front(), channel::kMostAreaBytes);
  for (const std::uint64_t area : areas) budget.give_back(1, area);
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_EQ(budget.take(1, kAsked + 1), kAsked);
}

TEST(ChannelBudgetTest, BuffersLeaveTheLeastAreaForEachFurtherClient) {
  ChannelBudget budget(0);
  ASSERT_NE(budget.take(1, kAsked), 0u);
  while (budget.take_buffer(1, 1 << 20)) {
  }
  EXPECT_FALSE(budget.take_buffer(1, UINT64_MAX));
  for (unsigned i = 1; i < ChannelBudget::kMostClientsOfUser; ++i) ASSERT_NE(budget.take(1, kAsked), 0u) << i;
  EXPECT_EQ(budget.take(1, kAsked), 0u);
  EXPECT_LE(budget.used_bytes(), ChannelBudget::kLeastBytes / 2);
}

TEST(ChannelBudgetTest, BuffersThatAreGivenBackMakeRoomForOthers) {
  ChannelBudget budget(0);
  const std::uint64_t area = budget.take(1, kAsked);
  unsigned buffers = 0;
  for (; budget.take_buffer(1, 1 << 20); ++buffers) {
  }
  ASSERT_GT(buffers, 1u);
  budget.give_back_buffers(1, 1 << 20);
  EXPECT_TRUE(budget.take_buffer(1, 1 << 20));
  EXPECT_FALSE(budget.take_buffer(1, 1 << 20));
  budget.give_back_buffers(1, std::uint64_t{buffers} << 20);
  budget.give_back(1, area);
  EXPECT_EQ(budget.used_bytes(), 0u);
}

}  // namespace
}  // namespace mdfs::fuse
