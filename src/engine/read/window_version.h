// One version of a window: the contents of its extents at one moment, kept for the time of a read in parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/core.h"

namespace mdfs::engine {

// A cache block as a version keeps it. The bytes of `block` replace those of `stored`.
struct KeptBlock {
  KeptBlock(std::atomic<std::size_t>& all, const CacheBlockKey& key)
      : kept_bytes(all), block(std::make_shared<CacheBlock>(key)) {}
  KeptBlock(const KeptBlock&) = delete;
  KeptBlock& operator=(const KeptBlock&) = delete;
  ~KeptBlock() { kept_bytes.fetch_sub(bytes, std::memory_order_relaxed); }

  std::atomic<std::size_t>& kept_bytes;  // of all versions
  const CacheBlockPtr block;             // not in the cache, so that no thread changes it
  MappedExtent stored;
  std::shared_ptr<const store::BlockHold> hold;  // of the blocks of `stored`
  bool is_stored = false;                        // all bytes are in `stored`
  std::size_t bytes = 0;                         // of memory, counted in kept_bytes; guarded by the cache block's mutex
};

// Made when a program begins to read a window in parts; at first it equals the object. A thread that is about to change
// a cache block under the window first gives the old block to the version (keep()). The version takes the buffer if the
// block is in memory, else the record with a hold on its blocks. Readers take kept cache blocks from the version and
// all others from the object. Afterwards they look again for cache blocks that were kept meanwhile.
// Bounds: buffers of all versions take at most an eighth of the cache; Space bounds the held blocks. A version beyond
// the bounds ends, and its later reads return stale_error().
// Any thread. Locks: below CacheBlock::mutex.
class WindowVersion {
 public:
  WindowVersion(Core& core, std::shared_ptr<OpenObject> object, const geometry::Window& window);
  WindowVersion(const WindowVersion&) = delete;
  WindowVersion& operator=(const WindowVersion&) = delete;
  ~WindowVersion();

  const geometry::Window& window() const { return window_; }
  const geometry::Box& box() const { return box_; }  // in steps of the array
  OpenObject& object() const { return *object_; }
  bool is_stale() const { return stale_.load(std::memory_order_acquire); }
  void give_up();

  bool wants(std::uint64_t extent, const geometry::Box& changed) const;
  // The cache block is about to change; the caller holds its mutex. `stored`: its record, unless unknown, with a hold
  // on the record's blocks.
  void keep(const CacheBlock& live, const MappedExtent* stored, const std::shared_ptr<const store::BlockHold>& hold);
  std::shared_ptr<KeptBlock> find(std::uint64_t extent) const;
  bool has_kept() const { return kept_count_.load(std::memory_order_acquire) > 0; }
  // After reading a kept cache block: counts its memory, or frees the memory if there is no room for it.
  void count_memory(KeptBlock& kept) const;

  static Error stale_error() {
    return {Errc::kStaleDisk, "the window changed during the read, and its older version was discarded"};
  }

 private:
  bool take_memory(std::size_t bytes) const;
  bool keep_bytes(const CacheBlock& live, KeptBlock& kept) const;

  Core& core_;
  const std::shared_ptr<OpenObject> object_;
  const geometry::Window window_;
  const geometry::Box box_;
  std::atomic<bool> stale_{false};
  std::atomic<std::size_t> kept_count_{0};
  mutable std::mutex mutex_;  // guards kept_
  std::unordered_map<std::uint64_t, std::shared_ptr<KeptBlock>> kept_;
};

}  // namespace mdfs::engine
