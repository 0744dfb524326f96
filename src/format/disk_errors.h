// Error counts of a disk, over all mounts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

// mdfs_disk_errors. Counts of another disk, by its UUID, are void.
struct DiskErrors {
  Uuid disk_uuid;
  std::int64_t since_ns = 0;  // start of the counts, nanoseconds since 1970
  std::uint64_t read_errors = 0;
  std::uint64_t write_errors = 0;
  std::uint64_t flush_errors = 0;
  std::uint64_t checksum_errors = 0;
  std::uint64_t repaired = 0;  // rewritten copies

  bool operator==(const DiskErrors&) const = default;
};

ByteVector encode(const DiskErrors& errors);
// Checks: disk-errors.length, disk-errors.uuid (not zero).
Result<DiskErrors> decode_disk_errors(ConstBytes value);

}  // namespace mdfs::format
