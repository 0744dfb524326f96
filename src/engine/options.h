// Arguments of the engine: options, the specification of an object, and the update of its inode item.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/result.h"
#include "base/stop.h"
#include "geometry/geometry.h"
#include "geometry/placement.h"
#include "store/transaction.h"

namespace mdfs::engine {

struct EngineOptions {
  std::size_t cache_bytes = 256u << 20;            // decoded extents and file cells, clean and dirty
  std::size_t largest_request_bytes = 256u << 10;  // per disk
  // Appended bytes are written as soon as they are this many, before an expected sync: enough for whole strips.
  std::size_t early_batch_bytes = 2u << 20;
  unsigned decode_threads = 0;  // 0 = all cores
  // false, for measurements: extents lie in the order of their writes, mixed with those of other objects
  bool grouping = true;
  // Data on missing or failed disks read as zeros. Only for a read-only store: a write beside such zeros would make
  // them permanent.
  bool zeros_for_lost = false;
};

// The facts of an object that the engine needs to reach its data.
struct ObjectSpec {
  std::uint64_t number = 0;
  std::optional<geometry::Geometry> geometry;  // absent: an ordinary file
  std::shared_ptr<const geometry::Placement> placement;
  std::uint64_t base = 0;
  std::uint64_t size_bytes = 0;
  bool is_inline = false;      // an ordinary file whose bytes lie in the tree
  bool copies = false;         // extents get a second copy on another disk
  unsigned group_members = 1;  // extents of an image that are to share a parity; 1: none do
};

// The values of the inode item for newly published data. The transaction that publishes the data calls InodeUpdate.
struct ObjectState {
  std::uint64_t size_bytes = 0;
  std::int64_t stored_bytes_change = 0;  // bytes of blocks published minus freed by this transaction
  bool is_inline = false;
};
using InodeUpdate = std::function<Status(store::Transaction&, const ObjectState&)>;

// A long call asks `stop` now and then. True: the caller wants the call to end, and the call returns kCancelled.
// Finished work stays.
using Stop = std::function<bool()>;
// A running read reports how many bytes, from the first on, it has copied; 0: it begins again.
using ReadProgress = std::function<void(std::uint64_t bytes)>;
inline Status stopped(const Stop& stop) { return stop && stop() ? Status(interrupted()) : Status(); }

}  // namespace mdfs::engine
