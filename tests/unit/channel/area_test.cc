// Places in the memory that the daemon shares with a client.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "channel_places.h"

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

TEST(BufferTableTest, APlaceIsFoundForBytesThatLieInOneBuffer) {
  ByteVector memory(100);
  const std::byte* const start = memory.data();
  BufferTable table;
  EXPECT_FALSE(table.find(start, 1));
  table.add(ConstBytes(start + 10, 20), 4);
  table.add(ConstBytes(start + 30, 20), 9);
  const auto place = [&](std::uint64_t at, std::uint64_t bytes) {
    const auto found = table.find(start + at, bytes);
    return found ? std::pair(found->buffer, found->offset) : std::pair(0u, std::uint64_t{0});
  };
  const std::pair none(0u, std::uint64_t{0});
  EXPECT_EQ(place(10, 20), std::pair(4u, std::uint64_t{0}));
  EXPECT_EQ(place(29, 1), std::pair(4u, std::uint64_t{19}));
  EXPECT_EQ(place(35, 15), std::pair(9u, std::uint64_t{5}));
  for (const auto& [at, bytes] : {std::pair(9, 5), {10, 21}, {29, 2}, {50, 1}, {0, 100}})
    EXPECT_EQ(place(at, bytes), none);
  EXPECT_FALSE(table.find(nullptr, 1));
  EXPECT_EQ(table.remove(start + 11), 0u);
  EXPECT_EQ(table.remove(start + 10), 4u);
  EXPECT_EQ(place(10, 20), none);
  EXPECT_EQ(place(30, 20), std::pair(9u, std::uint64_t{0}));
}

}  // namespace
}  // namespace mdfs::client
