// Counting requests of a disk.
// SPDX-License-Identifier: Apache-2.0
#include "device/disk_counters.h"

namespace mdfs::device {

void DiskCounters::ended(const Io& io, bool ok) {
  const auto count = [&](std::atomic<std::uint64_t>& requests, std::atomic<std::uint64_t>& errors) {
    requests.fetch_add(1, std::memory_order_relaxed);
    if (!ok) errors.fetch_add(1, std::memory_order_relaxed);
  };
  switch (io.op) {
    case Op::kRead:
      count(reads, read_errors);
      if (ok) read_bytes.fetch_add(io.bytes(), std::memory_order_relaxed);
      break;
    case Op::kWrite:
      count(writes, write_errors);
      if (ok) written_bytes.fetch_add(io.bytes(), std::memory_order_relaxed);
      break;
    case Op::kFlush:
      count(flushes, flush_errors);
      break;
    case Op::kDiscard:
      break;
  }
}

void CountingDisk::submit(std::span<Io* const> batch) {
  for (Io* io : batch) io->counters = &counters_;
  inner_->submit(batch);
}

}  // namespace mdfs::device
