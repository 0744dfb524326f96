// SPDX-License-Identifier: Apache-2.0
#include "store/pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace mdfs::store {
namespace {

// The most, by taking one block each from the two fullest disks until only one has any.
std::uint64_t taken_in_turn(std::vector<std::uint64_t> free) {
  for (std::uint64_t pairs = 0;; ++pairs) {
    std::sort(free.rbegin(), free.rend());
    if (free[1] == 0) return pairs;
    --free[0];
    --free[1];
  }
}

TEST(PairsTest, AsManyBlocksAreStoredTwiceAsCanBeTakenFromTwoDisksEach) {
  std::mt19937 random(24);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::uint64_t> free(2 + random() % 6);
    for (std::uint64_t& blocks : free) blocks = random() % (1u << random() % 8);
    EXPECT_EQ(pairs_in(free), taken_in_turn(free));
  }
}

TEST(PairsTest, TheRestOfALargeDiskIsOfNoUse) {
  EXPECT_EQ(pairs_in(std::vector<std::uint64_t>{100, 3, 4}), 7u);
  EXPECT_EQ(pairs_in(std::vector<std::uint64_t>{100, 0}), 0u);
}

TEST(PairsTest, AsManyPairsFitAsWereCountedIfTheDiskOfTheNextOneIsObeyed) {
  std::mt19937 random(25);
  for (int i = 0; i < 500; ++i) {
    std::vector<std::uint64_t> free(2 + random() % 5);
    for (std::uint64_t& blocks : free) blocks = random() % (1u << random() % 8);
    const std::uint64_t counted = pairs_in(free);
    for (std::uint64_t pair = 0; pair < counted; ++pair) {
      const std::optional<std::size_t> first = disk_of_next_pairs(free, 1);
      std::vector<std::size_t> disks;
      for (std::size_t disk = 0; disk < free.size(); ++disk)
        if (free[disk] > 0) disks.push_back(disk);
      std::shuffle(disks.begin(), disks.end(), random);
      if (first) std::stable_partition(disks.begin(), disks.end(), [&](std::size_t disk) { return disk == *first; });
      ASSERT_GE(disks.size(), 2u) << "after " << pair << " of " << counted;
      --free[disks[0]];
      --free[disks[1]];
    }
  }
}

}  // namespace
}  // namespace mdfs::store
