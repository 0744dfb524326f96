// One version of a window: what its extents held at one moment, for as long as it takes to read them.
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

// A cache block as a version has it. The bytes that `block` has go over those of `stored`.
struct KeptBlock {
  KeptBlock(std::atomic<std::size_t>& all, const CacheBlockKey& key)
      : kept_bytes(all), block(std::make_shared<CacheBlock>(key)) {}
  KeptBlock(const KeptBlock&) = delete;
  KeptBlock& operator=(const KeptBlock&) = delete;
  ~KeptBlock() { kept_bytes.fetch_sub(bytes, std::memory_order_relaxed); }

  std::atomic<std::size_t>& kept_bytes;  // of all versions
  const CacheBlockPtr block;             // not in the cache: nobody changes it
  StoredExtent stored;
  std::shared_ptr<const store::BlockHold> hold;  // of the blocks of `stored`
  bool is_stored = false;                        // all bytes are in `stored`
  std::size_t bytes = 0;                         // of memory, counted in kept_bytes; guarded by the cache block's mutex
};

// Made when somebody begins to read a window in parts. At first it is the object as it is. A thread that is about to
// change a cache block under the window gives the version the cache block as it was (keep()), before the change can be
// seen: its buffer if that is in memory, else its record, with a hold on the blocks. Readers take kept cache blocks
// from the version and all others from the object, and look again afterwards for cache blocks that were kept meanwhile.
//
// Bounds: buffers take at most an eighth of the cache for all versions together, blocks what Space gives to holds.
// Beyond them the version is given up: every later read of it ends with stale_error().
//
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
  // The cache block is about to change; its mutex is held. `stored`: its record, unless that is not known, and a hold
  // on the record's blocks.
  void keep(const CacheBlock& live, const StoredExtent* stored, const std::shared_ptr<const store::BlockHold>& hold);
  std::shared_ptr<KeptBlock> find(std::uint64_t extent) const;
  bool has_kept() const { return kept_count_.load(std::memory_order_acquire) > 0; }
  // After reading a kept cache block: its memory is counted, or given back if there is no room for it.
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
