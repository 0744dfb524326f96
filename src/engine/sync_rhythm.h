// Detects a program that appends and syncs in turns, whose appended bytes will soon have to be on the disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace mdfs::engine {

// The growth of one object between syncs, in bytes. A value; no thread contract.
class SyncRhythm {
 public:
  explicit SyncRhythm(std::uint64_t size) : synced_(size) {}

  // A sync of an object of this size.
  void note_sync(std::uint64_t size) {
    if (size != synced_) step_ = size > synced_ ? size - synced_ : 0;
    synced_ = size;
  }
  // An object that has grown to `size` since its last sync: is a sync to be expected? Yes until it has grown as much as
  // between the last two syncs, unless that was more than `largest_step`.
  bool expects_sync(std::uint64_t size, std::uint64_t largest_step) const {
    return step_ > 0 && step_ <= largest_step && size > synced_ && size - synced_ <= step_;
  }

 private:
  std::uint64_t synced_;    // the size at the last sync
  std::uint64_t step_ = 0;  // by how much that was larger than at the sync before
};

}  // namespace mdfs::engine
