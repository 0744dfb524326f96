// What a reader asks of the loader: bytes of a cache block, and a call once they are there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "engine/cache/cache_block.h"
#include "engine/map/extent_map.h"
#include "geometry/geometry.h"

namespace mdfs::engine {

// What somebody wants of a cache block.
struct Want {
  CacheBlockPtr block;
  geometry::Coord coord{};
  std::vector<ByteRanges::Range> ranges;  // of whole parts: they are what is loaded
  // Of a cache block that a version keeps: where it lies, whatever the tree says by now.
  const StoredExtent* stored = nullptr;
};

// Called once for each want that has all its bytes, by any of the threads at work, without a lock held. The buffer is
// the cache block's (none: zeros), its wanted bytes are valid and do not change while the hold lasts.
using Loaded = std::function<void(std::size_t want, const BufferRef& buffer)>;

}  // namespace mdfs::engine
