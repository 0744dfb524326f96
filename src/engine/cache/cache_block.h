// One decoded extent of an image, or one cell of an ordinary file, in memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>

#include "engine/cache/buffer_pool.h"
#include "engine/cache/byte_ranges.h"
#include "store/store.h"

namespace mdfs::engine {

struct CacheBlockKey {
  std::uint64_t object = 0;
  std::uint64_t index = 0;  // row-major in the grid of extents, slowest axis outermost; number of the cell
  bool operator==(const CacheBlockKey&) const = default;
};

// The range from the first to the last changed byte of a cache block; empty at first.
struct ChangedBytes {
  std::uint32_t begin = UINT32_MAX;
  std::uint32_t end = 0;
  bool operator==(const ChangedBytes&) const = default;
  bool empty() const { return begin >= end; }
  void add(const ChangedBytes& other) {
    begin = std::min(begin, other.begin);
    end = std::max(end, other.end);
  }
};

// A cache block and its state. `mutex` guards all fields but the key, and is held for work in memory only.
//   loading       one thread reads missing bytes from the disks. Threads that want to change the block wait;
//                 readers of valid bytes do not
//   write_locked  one thread writes the block back or replaces it, from a snapshot (its own hold on `buffer`).
//                 A thread that changes the block meanwhile finds the buffer shared, and makes a copy
//   dirty         the block has bytes that are not on the disks
struct CacheBlock {
  explicit CacheBlock(const CacheBlockKey& block_key) : key(block_key) {}

  const CacheBlockKey key;
  std::mutex mutex;
  std::condition_variable changed;  // loading or write_locked has ended

  BufferRef buffer;  // bytes beyond its end, or all without a buffer, are zeros where valid
  ByteRanges valid;  // ignored when complete
  bool complete = false;
  bool loading = false;
  bool write_locked = false;
  bool dirty = false;
  bool known_on_disk = false;           // a record exists: not a hole
  std::uint64_t changes = 0;            // counts modifications
  std::uint64_t published_changes = 0;  // the value of `changes` at the last publication
  std::uint32_t dirty_blocks = 0;       // ordinary files: bit i = block i of the cell
  ChangedBytes changed_bytes;           // images: since the cache block became dirty
  std::uint64_t filled_bytes = 0;       // bytes written since the cache block became dirty
  bool full = false;                    // dirty, and all of it has been written
  store::SpaceAmount reserved;          // part of the object's reservation
  std::uint64_t dirty_charge = 0;       // part of the engine's dirty bytes
  std::int64_t dirty_since_ns = 0;

  bool covers(std::uint32_t begin, std::uint32_t end) const { return complete || valid.covers(begin, end); }
  // Those in the buffer, into one at least as large. Not of a complete cache block.
  void copy_valid(const BufferRef& to) const {
    for (const ByteRanges::Range& range : valid.ranges())
      if (range.begin < buffer.size())
        std::memcpy(to.data() + range.begin, buffer.data() + range.begin,
                    std::min<std::size_t>(range.end, buffer.size()) - range.begin);
  }
};

using CacheBlockPtr = std::shared_ptr<CacheBlock>;

}  // namespace mdfs::engine
