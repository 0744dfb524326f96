// Counters of a disk: requests and errors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "device/disk.h"
#include "device/read_pace.h"

namespace mdfs::device {

// Disks count requests; the code that finds or repairs damage counts checksum_errors and repaired. Any thread.
struct DiskCounters {
  std::atomic<std::uint64_t> reads{0}, writes{0}, flushes{0};  // ended requests, without discards
  std::atomic<std::uint64_t> read_bytes{0}, written_bytes{0};
  std::atomic<std::uint64_t> read_errors{0}, write_errors{0}, flush_errors{0};
  std::atomic<std::uint64_t> checksum_errors{0};  // bytes that did not match their checksum
  std::atomic<std::uint64_t> repaired{0};         // rewritten copies
  std::atomic<std::uint64_t> waiting{0};          // requests that have not ended, with their bytes
  std::atomic<std::uint64_t> waiting_bytes{0};
  ReadPace pace;

  void ended(const Io& io, bool ok);
  // To be moved before a new request, those that wait counted as kRequestBytes each.
  std::uint64_t queued_bytes() const {
    return waiting_bytes.load(std::memory_order_relaxed) + kRequestBytes * waiting.load(std::memory_order_relaxed);
  }
  void reset();  // all to zero but what waits
};

}  // namespace mdfs::device
