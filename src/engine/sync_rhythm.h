// Does somebody append and sync in turns? Then what is being appended will be wanted on the disks soon.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace mdfs::engine {

// The growth of one object between syncs, in bytes. A value; no thread contract.
class SyncRhythm {
 public:
  explicit SyncRhythm(std::uint64_t size) : synced_(size) {}

  // Somebody has asked for all of an object of this size.
  void note_sync(std::uint64_t size) {
    if (size != synced_) step_ = size > synced_ ? size - synced_ : 0;
    synced_ = size;
  }
  // An object that has grown to `size` since is expected to be synced when it has grown as much as last time, if that
  // was not more than `largest_step`. One that grows on without is not.
  bool expects_sync(std::uint64_t size, std::uint64_t largest_step) const {
    return step_ > 0 && step_ <= largest_step && size > synced_ && size - synced_ <= step_;
  }

 private:
  std::uint64_t synced_;    // the size at the last sync
  std::uint64_t step_ = 0;  // by how much it was larger than at the one before
};

}  // namespace mdfs::engine
