// Reads for which a thread may stop waiting.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "device/disk.h"

namespace mdfs::device {

// Any thread. The disks fill memory that belongs to the reads, and continue to fill it after their thread has left.
class StoppableReads {
 public:
  struct Wanted {
    Disk* disk;
    std::uint64_t offset;
    std::size_t bytes;
  };
  struct Read {
    Status status;
    ConstBytes bytes;  // what was read, if the status is ok; valid as long as the memory
  };
  struct Done {
    std::shared_ptr<const AlignedBuffer> memory;
    std::vector<Read> reads;  // in the order in which they were wanted
  };

  StoppableReads() = default;
  StoppableReads(const StoppableReads&) = delete;
  StoppableReads& operator=(const StoppableReads&) = delete;
  // Waits for the reads whose threads have left.
  ~StoppableReads();

  // Starts all reads at once and waits for all, or until is_stopped(): those that have not ended are kCancelled then.
  // With `patience` it does not wait for longer, and those that have not ended are kBusy. At most kMostLeft calls leave
  // reads behind at a time; further ones wait.
  Done read(std::span<const Wanted> wanted, std::optional<std::chrono::nanoseconds> patience = std::nullopt);
  static constexpr std::size_t kMostLeft = 1024;

 private:
  struct Batch;
  static void ended(Io& io);
  void wait(std::unique_lock<std::mutex>& lock, Batch& batch, std::optional<std::chrono::nanoseconds> patience) const;

  std::mutex mutex_;  // guards all below, and the batches
  std::condition_variable all_ended_;
  std::size_t left_ = 0;  // batches without a waiting thread
};

}  // namespace mdfs::device
