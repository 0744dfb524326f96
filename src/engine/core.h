// The parts that the whole engine shares: the store, the memory, the threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/environment.h"
#include "device/hedging.h"
#include "engine/cache/buffer_pool.h"
#include "engine/cache/byte_budget.h"
#include "engine/cache/cache.h"
#include "engine/cache/encoding_memory.h"
#include "engine/late_loads.h"
#include "engine/map/extent_map.h"
#include "engine/options.h"
#include "engine/relocation_queue.h"
#include "engine/task_pool.h"
#include "store/store.h"

namespace mdfs::engine {

// The budget is shared out. Dirty cache blocks get up to half of the present limit of the cache. Cache blocks that are
// about to become dirty get up to an eighth, loads in progress up to a quarter, and those of streams, which must not
// wait for others, up to an eighth; of a small cache more, beside it. Evicting clean cache blocks therefore always
// frees memory, and threads never wait for memory in a circle.
struct Core {
  Core(store::Store& the_store, const EngineOptions& the_options, Environment& the_environment, unsigned threads)
      : store(the_store),
        options(the_options),
        environment(the_environment),
        pool(the_options.cache_bytes),
        cache(pool, the_options.cache_bytes),
        extent_map(the_store),
        loads(std::min(the_options.cache_bytes / 4, kMostLoads)),
        reserved_loads(std::clamp(the_options.cache_bytes / 8, kLeastReservedLoads, kMostLoads)),
        late_bytes(std::clamp(the_options.cache_bytes / 8, kLeastReservedLoads, kMostLoads)),
        writes(std::min(the_options.cache_bytes / 8, kMostWrites)),
        encoding(the_options.cache_bytes),
        relocations(the_store),
        tasks(threads),
        background(1),
        zeroed_disks(the_options.zeros_for_lost && the_store.read_only() ? the_store.lost_disks() : 0) {}

  std::size_t dirty_limit_bytes() const { return std::min(cache.limit_bytes() / 2, kMostDirty); }
  //  No read or write came for a while, and few bytes are dirty: the disks have time for relocation in the background.
  bool is_quiet() const {
    return relocations.is_quiet(environment) && dirty_bytes.load(std::memory_order_relaxed) <= dirty_limit_bytes() / 4;
  }
  // Disks that are not there, a bit each, and numbers that no disk has.
  std::uint64_t gone_disks() const {
    std::uint64_t gone = 0;
    for (unsigned disk = 0; disk < MDFS_MAX_DISKS; ++disk)
      if (disk >= store.disk_count() || !store.disk_info(disk).is_there()) gone |= std::uint64_t{1} << disk;
    return gone;
  }
  std::size_t batch_bytes() const { return std::clamp<std::size_t>(options.cache_bytes / 16, 256u << 10, 16u << 20); }

  //  Large caches are for data that are read again. More loads at once, or more dirty bytes, gain nothing.
  static constexpr std::size_t kMostLoads = 256u << 20;
  static constexpr std::size_t kLeastReservedLoads = 16u << 20;
  static constexpr std::size_t kMostWrites = 128u << 20;
  static constexpr std::size_t kMostDirty = 1u << 30;

  store::Store& store;
  const EngineOptions options;
  Environment& environment;
  BufferPool pool;
  Cache cache;
  ExtentMap extent_map;
  ByteBudget loads;
  ByteBudget reserved_loads;  // of threads whose requests come before all others (device/urgency.h)
  ByteBudget late_bytes;      // that late requests still fill, after their loads; more of them counts as loads
  ByteBudget writes;          // for cache blocks that writers are about to make dirty
  EncodingBudgets encoding;
  std::atomic<std::uint64_t> dirty_bytes{0};
  // Disks that answered reads with kMissingDisk, a bit each: extents are read from their other copies first.
  std::atomic<std::uint64_t> absent_disks{0};
  std::atomic<std::size_t> kept_bytes{0};  // of cache blocks that window versions keep
  // Extents and cells that were stored without their second copies since the last message of that, and its time.
  std::atomic<std::uint64_t> without_copies{0};
  std::atomic<std::int64_t> said_without_copies_ns{INT64_MIN / 2};
  RelocationQueue relocations;
  TaskPool tasks;                    // decodes and encodes; waits for a disk only to read a damaged extent again
  TaskPool background;               // starts loads ahead of readers
  const std::uint64_t zeroed_disks;  // one bit for each disk whose data read as zeros
  device::HedgeBudget hedges;
  device::LateDisks late_disks;
  LateLoads late_loads;
};

}  // namespace mdfs::engine
