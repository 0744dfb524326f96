// The record of a background operation: request and progress.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

// mdfs_operation_disk.
struct OperationDisk {
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t repaired = 0;
  std::uint64_t failed = 0;
  bool operator==(const OperationDisk&) const = default;
};

// mdfs_operation_error.
struct OperationError {
  std::uint64_t object = 0;
  std::uint64_t offset = 0;
  std::uint64_t block = 0;
  std::uint16_t disk = 0;
  std::uint16_t what = MDFS_ERROR_DATA;
  bool operator==(const OperationError&) const = default;
};

// mdfs_operation with its rows. Field meanings: ondisk.h. A value; no thread contract.
struct OperationRecord {
  std::uint32_t state = MDFS_OPERATION_RUNNING;
  std::uint32_t flags = 0;           // MDFS_OPERATION_DRY_RUN, MDFS_OPERATION_OBJECT
  std::uint64_t budget_bytes_s = 0;  // 0: no limit
  std::uint64_t threshold = 0;
  std::uint64_t object = 0;
  std::array<std::uint64_t, 4> parameters{};
  std::array<std::uint64_t, 4> cursor{};
  std::int64_t started_ns = 0;
  std::int64_t updated_ns = 0;
  std::uint64_t work_ns = 0;
  std::uint64_t bytes_total = 0;
  std::uint64_t bytes_done = 0;
  std::uint64_t items_total = 0;
  std::uint64_t items_done = 0;
  std::uint64_t items_changed = 0;
  std::uint64_t items_failed = 0;
  std::array<std::uint64_t, 8> figures{};
  std::string reason;                  // cut where it is longer than the field
  std::vector<OperationDisk> disks;    // by index; at most MDFS_MAX_DISKS
  std::vector<OperationError> errors;  // at most MDFS_MAX_ERRORS

  bool operator==(const OperationRecord&) const = default;
  bool running() const { return state == MDFS_OPERATION_RUNNING; }
  bool dry_run() const { return (flags & MDFS_OPERATION_DRY_RUN) != 0; }
  // Counts the error, and counts it against its disk unless the piece was skipped. Lists the error while there is room;
  // a full list drops a second error of an object for the first of another.
  void note_error(const OperationError& error);
};

inline constexpr std::uint32_t kOperationFlags = MDFS_OPERATION_DRY_RUN | MDFS_OPERATION_OBJECT;

// The value of the item. The record must be one that decode accepts (else abort).
ByteVector encode(const OperationRecord& record);
// Checks: operation.length, operation.state, operation.flags (unknown, or an object without the flag or the other way
// round), operation.reason (zero padded), operation.rows (their number), operation.error (disk, what).
Result<OperationRecord> decode_operation(ConstBytes value);

}  // namespace mdfs::format
