// The allocator of a client's data area.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "channel.h"

namespace mdfs::client {
namespace {

constexpr std::uint64_t kPages = 64;
constexpr std::uint64_t kBytes = kPages * AreaAllocator::kPageBytes;

TEST(AreaAllocatorTest, ThePartGivenBackLastIsTakenAgain) {
  AreaAllocator area(kBytes);
  EXPECT_EQ(area.take(100), 0);
  area.give_back(0, 100);
  EXPECT_EQ(area.take(5000), 0);
  EXPECT_EQ(area.take(1), 2 * 4096);
}

TEST(AreaAllocatorTest, PartsNeverOverlapAndAllAreOneAgainAtTheEnd) {
  std::mt19937_64 random(7);
  AreaAllocator area(kBytes);
  std::map<std::uint64_t, std::uint64_t> taken;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t bytes = 1 + random() % (12 * AreaAllocator::kPageBytes);
    if (random() % 2 == 0) {
      const std::int64_t place = area.take(bytes);
      if (place < 0) continue;
      const auto offset = static_cast<std::uint64_t>(place);
      ASSERT_LE(offset + bytes, kBytes);
      const auto next = taken.lower_bound(offset);
      ASSERT_TRUE(next == taken.end() || offset + bytes <= next->first);
      ASSERT_TRUE(next == taken.begin() || std::prev(next)->first + std::prev(next)->second <= offset);
      taken.emplace(offset, bytes);
    } else if (!taken.empty()) {
      const auto one = std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
      area.give_back(one->first, one->second);
      taken.erase(one);
    }
  }
  for (const auto& [offset, bytes] : taken) area.give_back(offset, bytes);
  EXPECT_EQ(area.take(kBytes), 0);
}

}  // namespace
}  // namespace mdfs::client
