// What the callers of the engine hand in: its options, what an object is, and how its inode item follows its data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/result.h"
#include "geometry/geometry.h"
#include "geometry/placement.h"
#include "store/transaction.h"

namespace mdfs::engine {

struct EngineOptions {
  std::size_t cache_bytes = 256u << 20;            // decoded extents and file cells, clean and dirty
  std::size_t largest_request_bytes = 256u << 10;  // per disk
  // What is appended is written as soon as it is so much, before the sync that is expected: enough for whole strips.
  std::size_t early_batch_bytes = 2u << 20;
  unsigned decode_threads = 0;  // 0 = all cores
  bool grouping = true;         // false, for measurements: extents lie as they come, those of all objects mixed
  // What lies on disks that are missing or have failed reads as zeros. Only for a store that is opened read-only: what
  // is written beside such zeros would make them last.
  bool zeros_for_lost = false;
};

// What the engine must know of an object to reach its data.
struct ObjectSpec {
  std::uint64_t number = 0;
  std::optional<geometry::Geometry> geometry;  // absent: an ordinary file
  std::shared_ptr<const geometry::Placement> placement;
  std::uint64_t base = 0;
  std::uint64_t size_bytes = 0;
  bool is_inline = false;  // an ordinary file whose bytes lie in the tree
};

// What the inode item must say once data reach the tree. Called inside the transaction that publishes the data.
struct ObjectState {
  std::uint64_t size_bytes = 0;
  std::int64_t stored_bytes_change = 0;  // bytes of blocks published minus freed by this transaction
  bool is_inline = false;
};
using InodeUpdate = std::function<Status(store::Transaction&, const ObjectState&)>;

// Asked now and then by a call that may take long: true once its caller wants it to end, which it then does with
// kCancelled. What has been done stays.
using Stop = std::function<bool()>;
inline Status stopped(const Stop& stop) {
  return stop && stop() ? Status(Errc::kCancelled, "the caller was interrupted") : Status();
}

}  // namespace mdfs::engine
