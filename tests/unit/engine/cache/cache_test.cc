// The budget of the cache, the memory of released buffers included.
// SPDX-License-Identifier: Apache-2.0
#include "engine/cache/cache.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "engine/cache/slab_classes.h"

namespace mdfs::engine {
namespace {

constexpr std::size_t kMiB = 1u << 20;

void load(Cache& cache, std::uint64_t index, std::size_t size) {
  const CacheBlockPtr block = cache.find_or_create({1, index});
  BufferRef buffer = cache.acquire(size);
  const std::lock_guard lock(block->mutex);
  block->buffer = std::move(buffer);
}

TEST(CacheTest, MemoryStaysWithinTheBudgetWhateverTheSizesOfBuffers) {
  for (const std::size_t budget : {16 * kMiB, 128 * kMiB}) {
    BufferPool pool(budget);
    Cache cache(pool, budget);
    std::mt19937_64 random(7);
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      // One size for a while, as of one image after another.
      const std::size_t size = std::vector<std::size_t>{256 << 10, 192 << 10, 40 << 10, 1 << 20}[i / 1000 % 4];
      load(cache, i, random() % 8 == 0 ? random() % size + 1 : size);
      const BufferRef brief = cache.acquire(random() % size + 1, Use::kBrief);
      ASSERT_LE(pool.used_bytes() + pool.idle_bytes(), budget) << i;
    }
    EXPECT_GT(pool.used_bytes(), budget / 2) << "the budget is used";
    EXPECT_GT(cache.evictions(), 0u);
  }
}

TEST(CacheTest, AFullCacheUsesTheMemoryOfWhatLeaves) {
  BufferPool pool(128 * kMiB);
  Cache cache(pool, 128 * kMiB);
  for (std::uint64_t i = 0; i < 2000; ++i) load(cache, i, 256 << 10);
  const std::size_t memory = pool.used_bytes() + pool.idle_bytes();
  for (std::uint64_t i = 2000; i < 4000; ++i) {
    load(cache, i, 256 << 10);
    ASSERT_LE(pool.used_bytes() + pool.idle_bytes(), memory);
    ASSERT_GE(pool.used_bytes() + pool.idle_bytes(), memory - kHugePageBytes) << "nothing goes back to the system";
  }
}

TEST(CacheTest, ASmallerLimitHoldsAtOnceAndALargerOneIsFilledAgain) {
  BufferPool pool(128 * kMiB);
  Cache cache(pool, 128 * kMiB);
  for (std::uint64_t i = 0; i < 600; ++i) load(cache, i, 256 << 10);
  const CacheBlockPtr held = cache.peek({1, 599});
  cache.set_limit(32 * kMiB);
  EXPECT_EQ(cache.limit_bytes(), 32 * kMiB);
  EXPECT_LE(cache.used_bytes(), 32 * kMiB);
  EXPECT_GT(cache.used_bytes(), 24 * kMiB);
  EXPECT_NE(cache.peek({1, 599}), nullptr) << "a block in use stays";
  for (std::uint64_t i = 1000; i < 1600; ++i) load(cache, i, 256 << 10);
  EXPECT_LE(cache.used_bytes(), 32 * kMiB);
  cache.set_limit(128 * kMiB);
  for (std::uint64_t i = 2000; i < 2600; ++i) load(cache, i, 256 << 10);
  EXPECT_GT(cache.used_bytes(), 120 * kMiB);
}

TEST(CacheTest, ALimitThatBlocksInUseExceedEndsItsSearch) {
  BufferPool pool(64 * kMiB);
  Cache cache(pool, 64 * kMiB);
  std::vector<CacheBlockPtr> held;
  for (std::uint64_t i = 0; i < 100; ++i) {
    load(cache, i, 256 << 10);
    held.push_back(cache.peek({1, i}));
  }
  cache.set_limit(16 * kMiB);
  EXPECT_GE(pool.used_bytes(), 25 * kMiB);
  EXPECT_EQ(pool.idle_bytes(), 0u);
}

// Those in use are in the main queue, of which new cache blocks are a tenth or less.
TEST(CacheTest, NewBlocksLeaveWhereAllOthersAreInUse) {
  BufferPool pool(32 * kMiB);
  Cache cache(pool, 32 * kMiB);
  std::vector<CacheBlockPtr> held;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    load(cache, i, 4096);
    held.push_back(cache.peek({1, i}));
  }
  for (std::uint64_t i = 1000; i < 1400; ++i) {
    load(cache, i, kMiB);
    ASSERT_LE(cache.used_bytes(), 32 * kMiB) << i;
  }
}

TEST(CacheTest, ABlockOfWhichLittleIsLoadedCountsLittle) {
  BufferPool pool(64 * kMiB);
  Cache cache(pool, 64 * kMiB);
  std::vector<CacheBlockPtr> blocks;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    blocks.push_back(cache.find_or_create({1, i}));
    blocks.back()->buffer = cache.acquire_sparse(256 << 10, 16 << 10);
  }
  EXPECT_EQ(cache.evictions(), 0u);
  EXPECT_EQ(pool.used_bytes(), 3000u * (16 << 10));
  blocks.clear();
  for (std::uint64_t i = 0; i < 3000; ++i) cache.charge(cache.find_or_create({1, i})->buffer, 16 << 10);
  EXPECT_GT(cache.evictions(), 0u);
  EXPECT_LE(cache.used_bytes(), 64 * kMiB + (16 << 10));
}

TEST(CacheTest, MemoryOfReleasedBuffersIsGivenBackWhenAskedFor) {
  BufferPool pool(128 * kMiB);
  Cache cache(pool, 128 * kMiB);
  for (std::uint64_t i = 0; i < 200; ++i) load(cache, i, 256 << 10);
  cache.erase_object(1);
  EXPECT_GE(pool.idle_bytes(), 50 * kMiB);
  EXPECT_GE(cache.give_back_idle(), 50 * kMiB);
  EXPECT_EQ(cache.used_bytes(), 0u);
}

}  // namespace
}  // namespace mdfs::engine
