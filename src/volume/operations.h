// The long operations of a volume, as their callers see them: scrub, defragmentation, drain of a disk, balancing,
// protection.
// src/maintenance does the work; the program that opens a volume passes the two together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "engine/engine.h"
#include "format/operation.h"
#include "mdfs/ondisk.h"

namespace mdfs::volume {

using format::OperationRecord;

enum class OperationKind : std::uint8_t {
  kScrub = MDFS_OPERATION_SCRUB,
  kDefrag = MDFS_OPERATION_DEFRAG,
  kDrain = MDFS_OPERATION_DRAIN,
  kBalance = MDFS_OPERATION_BALANCE,
  kProtect = MDFS_OPERATION_PROTECT,
};
inline constexpr unsigned kOperationKinds = 5;

// The request of a caller. `object` other than 0: for that object only.
struct OperationRequest {
  OperationKind kind = OperationKind::kScrub;
  bool dry_run = false;
  std::uint64_t object = 0;
  std::uint64_t budget_bytes_s = 0;  // 0: no limit
  std::uint64_t threshold = 0;       // by kind, as the next
  std::array<std::uint64_t, 4> parameters{};
};

// The result of one call of turn().
struct Turn {
  bool worked = false;
  std::int64_t wait_ns = 0;  // unless it worked: time until the next call is worthwhile; kIdle if nothing runs
  static constexpr std::int64_t kIdle = INT64_MAX;
};

// Rewritten extents that have relocated home since the mount, and those that may still do so.
struct HomeState {
  std::uint64_t relocated = 0;
  std::uint64_t relocated_bytes = 0;  // of whole blocks
  std::uint64_t away_from_home = 0;
};

// At most one operation of each kind runs at a time; operations of several kinds take turns. Any thread may call any
// method.
class Operations {
 public:
  virtual ~Operations() = default;

  // ---- for the volume, which owns the operations
  // Called once, when the volume is opened. Operations that were running resume, unless the volume is read-only.
  virtual Status load() = 0;
  // Starts the threads that call turn() and relocate.
  virtual void start_thread() = 0;
  // Ends the threads after their present steps and saves the progress. Nothing runs afterwards.
  virtual void stop() = 0;
  // True if an operation that moves data is running.
  virtual bool moves_data() const = 0;

  // ---- for callers
  // Returns when the operation is recorded on the disks, so that it resumes after a crash. kBusy: one of this kind is
  // running. kReadOnly: the volume cannot be written, and this kind writes. Other errors: the operation refuses its
  // parameters.
  virtual Status start(const OperationRequest& request) = 0;
  // Returns when the operation has stopped. kNoData: none is running.
  virtual Status cancel(OperationKind kind) = 0;
  // Resumes an operation that was cancelled or has failed. A budget replaces that of the start. For a running operation
  // a budget is allowed; without one the error is kBusy. kNoData: there is none, or it is done.
  virtual Status resume(OperationKind kind, std::optional<std::uint64_t> budget_bytes_s) = 0;
  // The running or the last operation. kNoData: there never was one.
  virtual Result<OperationRecord> status(OperationKind kind) const = 0;
  // Does one step of one operation, if budgets and readers allow it now. For the thread, and for tests without one.
  virtual Turn turn() = 0;

  // ---- relocation in the background
  // Relocates rewritten extents home where more of their neighbours touch each other afterwards. An idle volume does
  // this by itself; this call does all at once. Dirty bytes stay dirty.
  virtual Result<engine::RelocationOutcome> relocate_home() = 0;
  virtual HomeState home_state() const = 0;
};

}  // namespace mdfs::volume
