// A request of a reader to the loader: bytes of a cache block, and a call when they are there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "engine/cache/cache_block.h"
#include "engine/map/extent_map.h"
#include "geometry/geometry.h"

namespace mdfs::engine {

// Wanted bytes of one cache block.
struct Want {
  CacheBlockPtr block;
  geometry::Coord coord{};
  std::vector<ByteRanges::Range> ranges;  // whole parts, which are the unit of loading
  // The record of a cache block that a version keeps; the tree may have another by now.
  const MappedExtent* stored = nullptr;
  // The cache block gets the frame of `stored`, verified and not decoded.
  bool as_frame = false;
};

// Called once for each want that has all its bytes, by any working thread, without a lock held. The buffer is that of
// the cache block (none: zeros). Its wanted bytes are valid, and do not change while the hold lasts.
using Loaded = std::function<void(std::size_t want, const BufferRef& buffer)>;

}  // namespace mdfs::engine
