// Remembers writes through the page cache that failed or came short, for the next fsync of each descriptor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "volume/volume.h"

namespace mdfs::fuse {

// After such a write the kernel reads all pages of the write again, also pages that hold newer bytes from a mapping of
// another program. The daemon cannot know of these bytes. A descriptor that may have a mapping therefore gets an error
// from its next fsync or msync.
//
// Any thread. Failures have numbers; `seen` of a descriptor is the last one that it does not report.
class FailedWrites {
 public:
  void note(volume::Ino ino, Errc code);
  // The kernel has forgotten the inode, so no program has it open.
  void forget(volume::Ino ino);
  // For a new descriptor.
  std::uint64_t last() const { return last_.load(std::memory_order_acquire); }
  // The error of the last failure that the descriptor has not reported yet, once.
  std::optional<Errc> take(volume::Ino ino, std::atomic<std::uint64_t>& seen);

 private:
  struct Failure {
    std::uint64_t number = 0;
    Errc code = Errc::kIo;
  };
  std::atomic<std::uint64_t> last_{0};
  std::mutex mutex_;  // guards failures_
  std::unordered_map<volume::Ino, Failure> failures_;
};

}  // namespace mdfs::fuse
