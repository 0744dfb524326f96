// The cache: a budget of memory, and which cache block leaves when it is used up.
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

// Any thread. Lock order: a cache block's mutex before a shard's; the cache never takes a cache block's mutex.
//
// Replacement is S3-FIFO (Yang et al., SOSP 2023) in each shard: new cache blocks enter a small queue and leave it
// unless they are used again more than once, so that a scan cannot push out what is in use; those that were remembered
// or are used again live in the main queue and get another round for each use. A cache block that somebody holds
// (readers at work, dirty cache blocks, which their object holds) is never removed.
class Cache {
 public:
  Cache(BufferPool& pool, std::size_t budget_bytes);

  CacheBlockPtr find(const CacheBlockKey& key);  // null if absent; counts as a use
  CacheBlockPtr peek(const CacheBlockKey& key);  // the same, not counted
  CacheBlockPtr find_or_create(const CacheBlockKey& key);
  // The cache blocks of an object with first <= index < last, in no order.
  std::vector<CacheBlockPtr> blocks_between(std::uint64_t object, std::uint64_t first, std::uint64_t last);
  // Forgets the cache block whoever holds it.
  void erase(const CacheBlockKey& key);
  // Forgets all cache blocks of an object.
  void erase_object(std::uint64_t object);

  // A buffer, after making room for it: within the budget as long as something can leave.
  BufferRef acquire(std::size_t size, Use use = Use::kLasting);
  // A sparse one, charged for so many bytes that are about to be filled; and more bytes of one.
  BufferRef acquire_sparse(std::size_t size, std::size_t bytes);
  void charge(const BufferRef& buffer, std::size_t bytes);

  // How much it may hold now, at most its budget. A smaller limit holds at once, but for what is in use.
  std::size_t limit_bytes() const { return limit_bytes_.load(std::memory_order_relaxed); }
  void set_limit(std::size_t bytes);
  // Makes it hold no more now; it may grow again.
  void trim_to(std::size_t bytes);
  // Gives the memory of released buffers back to the system; the bytes.
  std::size_t give_back_idle() { return pool_.give_back(0); }
  // Memory, that of released buffers included.
  std::size_t used_bytes() const;
  std::uint64_t hits() const { return hits_.load(std::memory_order_relaxed); }
  std::uint64_t misses() const { return misses_.load(std::memory_order_relaxed); }
  std::uint64_t evictions() const { return evictions_.load(std::memory_order_relaxed); }
  void count(std::uint64_t hits, std::uint64_t misses);

 private:
  static constexpr std::size_t kShards = 32;
  static constexpr std::size_t kBlockOverheadBytes = 512;  // of a cache block with its places in map and queue
  static constexpr std::uint8_t kMaxUses = 3;
  static constexpr std::size_t kVictimsOfNewBlock = 4;
  static constexpr std::size_t kStepsOfNewBlock = 16;
  // A new buffer: so many, and one for so many of its bytes.
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
  // `growth` tells by how much the pool is about to grow.
  void make_room(std::size_t size, const std::function<std::size_t()>& growth);
  // One cache block leaves, out of the next shards that have one; false if none can. `patience`: how many are looked
  // at.
  bool evict(std::size_t& patience);
  // Takes one cache block out of the shard, if one can be and so many steps of the clock find it; the caller destroys
  // it without the lock. `steps`: then what is left of them.
  static CacheBlockPtr evict_from(Shard& shard, std::size_t& steps);
  // Some that a new cache block takes the place of; likewise.
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
