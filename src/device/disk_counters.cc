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

void DiskCounters::reset() {
  for (auto* counter : {&reads, &writes, &flushes, &read_bytes, &written_bytes, &read_errors, &write_errors,
                        &flush_errors, &checksum_errors, &repaired})
    *counter = 0;
  pace.reset();
}

}  // namespace mdfs::device
