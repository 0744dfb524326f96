// Planned loads ahead of readers, whose cache blocks are not locked yet.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>

#include "engine/locks.h"
#include "geometry/decompose.h"

namespace mdfs::engine {

// A window, or a range of the canonical bytes, to be loaded as one plan.
struct PlannedLoad {
  GridBox extents;                   // that hold the window or range
  std::optional<geometry::Box> box;  // absent: a range of the canonical bytes
  std::uint64_t offset = 0;          // in the canonical bytes, of a range
  std::uint64_t bytes = 0;           // of the range, or from the beginning of the box on
  std::uint64_t number = 0;          // given by the loader
};

// The planned loads of one object. The background thread, or the first reader that needs a cache block of a plan, locks
// all its cache blocks at once while it holds `locking`. The requests of the whole plan can therefore be merged. No
// thread waits for a disk while it holds `locking`.
struct PlannedLoads {
  std::mutex locking;  // guards changes of the fields below; taken before CacheBlock::mutex, after the barrier
  std::list<PlannedLoad> waiting;
  std::uint64_t last_number = 0;
  std::atomic<std::size_t> count{0};  // of `waiting`, to be read without the lock
};

}  // namespace mdfs::engine
