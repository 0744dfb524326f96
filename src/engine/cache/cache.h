// The cache: a budget of memory, and the choice of the cache blocks to evict.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/cache/buffer_pool.h"
#include "engine/cache/cache_block.h"

namespace mdfs::engine {

// Any thread. Lock order: a cache block's mutex before a shard's. The cache never takes a cache block's mutex.
// Each shard evicts by S3-FIFO (Yang et al., SOSP 2023). New cache blocks enter a small queue. Blocks that are used
// again more than once move to the main queue, the others are evicted; a scan therefore cannot evict blocks in use.
// Evicted blocks are remembered for a while, and enter the main queue when they come again. Each use gives a block of
// the main queue another round. A cache block that a reader holds, and a dirty one, which its object holds, is never
// evicted.
class Cache {
 public:
  Cache(BufferPool& pool, std::size_t budget_bytes);

  CacheBlockPtr find(const CacheBlockKey& key);  // null if absent; counts as a use
  CacheBlockPtr peek(const CacheBlockKey& key);  // the same, without counting a use
  CacheBlockPtr find_or_create(const CacheBlockKey& key);
  // The cache blocks of an object with first <= index < last, in any order.
  std::vector<CacheBlockPtr> blocks_between(std::uint64_t object, std::uint64_t first, std::uint64_t last);
  // Forgets the cache block, even if others hold it.
  void erase(const CacheBlockKey& key);
  // Forgets all cache blocks of an object.
  void erase_object(std::uint64_t object);

  // A buffer. Evicts cache blocks first, to stay within the budget as long as any can be evicted.
  BufferRef acquire(std::size_t size, Use use = Use::kLasting);
  // A sparse buffer, charged for the bytes that are about to be filled; and a further charge.
  BufferRef acquire_sparse(std::size_t size, std::size_t bytes);
  void charge(const BufferRef& buffer, std::size_t bytes);

  // The present limit, at most the budget. A smaller limit holds at once, except for memory in use.
  std::size_t limit_bytes() const { return limit_bytes_.load(std::memory_order_relaxed); }
  void set_limit(std::size_t bytes);
  // Evicts down to this size once; the cache may grow again.
  void trim_to(std::size_t bytes);
  // Gives the memory of released buffers back to the system. Returns the bytes.
  std::size_t give_back_idle() { return pool_.give_back(0); }
  // Memory, with that of released buffers.
  std::size_t used_bytes() const;
  // Would so many bytes more fit the limit?
  bool has_room_for(std::size_t bytes) const { return used_bytes() + bytes <= limit_bytes(); }
  std::uint64_t hits() const { return hits_.load(std::memory_order_relaxed); }
  std::uint64_t misses() const { return misses_.load(std::memory_order_relaxed); }
  std::uint64_t evictions() const { return evictions_.load(std::memory_order_relaxed); }
  void count(std::uint64_t hits, std::uint64_t misses);

 private:
  static constexpr std::size_t kShards = 32;
  static constexpr std::size_t kBlockOverheadBytes = 512;  // of a cache block with its entries in map and queue
  static constexpr std::uint8_t kMaxUses = 3;
  static constexpr std::size_t kVictimsOfNewBlock = 4;
  static constexpr std::size_t kStepsOfNewBlock = 16;
  // Steps for a new buffer: at least so many, and one for so many of its bytes.
  static constexpr std::size_t kLeastSteps = 512;
  static constexpr std::size_t kBytesPerStep = 64;

  struct KeyHash {
    std::size_t operator()(const CacheBlockKey& key) const;
  };
  struct Slot {
    CacheBlockPtr block;
    std::uint8_t uses = 0;
    bool in_main = false;
  };
  using Queue = std::list<Slot>;
  struct alignas(64) Shard {
    std::mutex mutex;  // guards all below
    std::unordered_map<CacheBlockKey, Queue::iterator, KeyHash> map;
    Queue small;
    Queue main;
    std::deque<std::size_t> ghosts;  // hashes of cache blocks that left the small queue, oldest first
    std::unordered_multiset<std::size_t> ghost_set;
  };

  Shard& shard_of(std::size_t hash) { return shards_[hash >> 32 & (kShards - 1)]; }
  CacheBlockPtr look_up(const CacheBlockKey& key, bool count_use);
  bool over_limit() const { return used_bytes() > limit_bytes(); }
  // `growth` returns by how much the pool would grow.
  void make_room(std::size_t size, const std::function<std::size_t()>& growth);
  // Evicts one cache block from the next shard that has a candidate; false if there is none. `patience` counts down the
  // cache blocks that are examined.
  bool evict(std::size_t& patience);
  // Removes one cache block from the shard if a candidate is found within `steps`; the caller destroys it without the
  // lock. `steps` is reduced by the steps taken.
  static CacheBlockPtr evict_from(Shard& shard, std::size_t& steps);
  static CacheBlockPtr evict_from_small(Shard& shard, std::size_t& steps);
  // Removes blocks to make place for a new cache block; the caller destroys them without the lock.
  std::array<CacheBlockPtr, kVictimsOfNewBlock> trim(Shard& shard);
  static CacheBlockPtr remove(Shard& shard, Queue& queue, Queue::iterator slot);
  static void remember(Shard& shard, std::size_t hash);

  BufferPool& pool_;
  std::atomic<std::size_t> limit_bytes_;
  std::array<Shard, kShards> shards_;
  std::atomic<std::size_t> blocks_{0};
  std::atomic<std::size_t> next_victim_shard_{0};
  std::atomic<std::uint64_t> hits_{0}, misses_{0}, evictions_{0};
};

}  // namespace mdfs::engine
