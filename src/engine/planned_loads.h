// The loads ahead of readers that nobody has locked yet.
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

// A window, or a range of the canonical bytes, that is to be loaded as one plan.
struct PlannedLoad {
  GridBox extents;                   // that it lies in
  std::optional<geometry::Box> box;  // absent: a range of the canonical bytes
  std::uint64_t offset = 0;          // in the canonical bytes, of a range
  std::uint64_t bytes = 0;           // of the range, or from the beginning of the box
  std::uint64_t number = 0;          // given by the loader
};

// Of one object. A plan's cache blocks are locked together, with `locking` held, by the background thread or by the
// first reader that needs one of them, whoever comes first. So the requests of a plan are merged over all of it.
// Nothing waits for a disk with `locking` held.
struct PlannedLoads {
  std::mutex locking;  // guards the changes of all below; outside of CacheBlock::mutex, within the barrier
  std::list<PlannedLoad> waiting;
  std::uint64_t last_number = 0;
  std::atomic<std::size_t> count{0};  // of waiting, to look without the lock
};

}  // namespace mdfs::engine
