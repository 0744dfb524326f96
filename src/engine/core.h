// What all parts of the engine share: the store, the memory, the threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/environment.h"
#include "engine/cache/buffer_pool.h"
#include "engine/cache/byte_budget.h"
#include "engine/cache/cache.h"
#include "engine/cache/encoding_memory.h"
#include "engine/home_blocks.h"
#include "engine/map/extent_map.h"
#include "engine/options.h"
#include "engine/relocation_queue.h"
#include "engine/task_pool.h"
#include "store/store.h"

namespace mdfs::engine {

// Shares of the budget: dirty cache blocks up to a half of what the cache may hold now, cache blocks about to become
// dirty up to an eighth, loads at work up to a quarter. So some can always be made free by evicting clean cache blocks,
// and nobody waits for memory in a circle.
struct Core {
  Core(store::Store& the_store, const EngineOptions& the_options, Environment& the_environment, unsigned threads)
      : store(the_store),
        options(the_options),
        environment(the_environment),
        pool(the_options.cache_bytes),
        cache(pool, the_options.cache_bytes),
        extent_map(the_store),
        homes(the_store),
        loads(std::min(the_options.cache_bytes / 4, kMostLoads)),
        writes(std::min(the_options.cache_bytes / 8, kMostWrites)),
        encoding(the_options.cache_bytes),
        tasks(threads),
        background(1),
        zeroed_disks(the_options.zeros_for_lost && the_store.read_only() ? the_store.lost_disks() : 0) {}

  bool is_zeroed(unsigned disk) const { return disk < MDFS_MAX_DISKS && (zeroed_disks >> disk & 1) != 0; }
  std::size_t dirty_limit_bytes() const { return std::min(cache.limit_bytes() / 2, kMostDirty); }
  // Nobody has read or written for a while, and little is dirty: the disks have time for what moves by itself.
  bool is_quiet() const {
    return relocations.is_quiet(environment) && dirty_bytes.load(std::memory_order_relaxed) <= dirty_limit_bytes() / 4;
  }
  std::size_t batch_bytes() const { return std::clamp<std::size_t>(options.cache_bytes / 16, 256u << 10, 16u << 20); }

  // Large caches are for what is read again: more work at once, or more to write back, gains nothing.
  static constexpr std::size_t kMostLoads = 256u << 20;
  static constexpr std::size_t kMostWrites = 128u << 20;
  static constexpr std::size_t kMostDirty = 1u << 30;

  store::Store& store;
  const EngineOptions options;
  Environment& environment;
  BufferPool pool;
  Cache cache;
  ExtentMap extent_map;
  HomeBlocks homes;
  ByteBudget loads;
  ByteBudget writes;  // cache blocks that writers are about to make dirty
  EncodingBudgets encoding;
  std::atomic<std::uint64_t> dirty_bytes{0};
  std::atomic<std::size_t> kept_bytes{0};  // of cache blocks that versions of windows keep
  RelocationQueue relocations;
  TaskPool tasks;                    // decodes and encodes; never waits for a disk, but for a damaged extent read again
  TaskPool background;               // starts loads ahead of readers
  const std::uint64_t zeroed_disks;  // bits of those whose data read as zeros
};

}  // namespace mdfs::engine
