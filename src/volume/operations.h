// The long operations of a volume, as those see them who start and watch them: scrub, defragmentation, drain of a
// disk, balancing. The layer above does the work (src/maintenance); whoever opens a volume hands it in.
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
};
inline constexpr unsigned kOperationKinds = 4;

// What somebody asks for. `object` without 0: of that object only.
struct OperationRequest {
  OperationKind kind = OperationKind::kScrub;
  bool dry_run = false;
  std::uint64_t object = 0;
  std::uint64_t budget_bytes_s = 0;  // 0: no limit
  std::uint64_t threshold = 0;       // by kind, as the next
  std::array<std::uint64_t, 4> parameters{};
};

// What one call of turn() did.
struct Turn {
  bool worked = false;
  std::int64_t wait_ns = 0;  // unless it worked: when it is worth trying again, kIdle if nothing runs
  static constexpr std::int64_t kIdle = INT64_MAX;
};

// Rewritten extents that have relocated home, since the mount, and those that may yet.
struct HomeState {
  std::uint64_t relocated = 0;
  std::uint64_t relocated_bytes = 0;  // of whole blocks
  std::uint64_t away_from_home = 0;
};

// At most one operation of each kind runs at a time; those of several kinds take turns. Any thread may call any method.
class Operations {
 public:
  virtual ~Operations() = default;

  // ---- for the volume that owns it
  // Once, as the volume is opened: what was running resumes (not on a volume that cannot be written).
  virtual Status load() = 0;
  // From now on threads call turn(), and relocate.
  virtual void start_thread() = 0;
  // Ends the threads after their steps and saves where all stand. Nothing runs afterwards.
  virtual void stop() = 0;
  // Is one running that moves data?
  virtual bool moves_data() const = 0;

  // ---- for whoever asks for work
  // Returns when the operation is recorded on the disks, so that it resumes after a crash. kBusy: one of this kind
  // runs; kReadOnly: the volume cannot be written, and this kind needs that; or what the operation says of its
  // parameters.
  virtual Status start(const OperationRequest& request) = 0;
  // Returns when it has stopped. kNoData: none runs.
  virtual Status cancel(OperationKind kind) = 0;
  // One that was cancelled or has failed resumes. A budget replaces that of the start, and may be given to one that
  // runs; else that is kBusy. kNoData: there is none, or it is done.
  virtual Status resume(OperationKind kind, std::optional<std::uint64_t> budget_bytes_s) = 0;
  // The one that runs or ran last. kNoData: there never was one.
  virtual Result<OperationRecord> status(OperationKind kind) const = 0;
  // One step of one operation, if any may take one now: budgets and readers make it wait. For the thread, and for tests
  // that do without it.
  virtual Turn turn() = 0;

  // ---- relocation without being asked
  // A volume does this when its disks have time: rewritten extents relocate home where more of their
  // neighbours then touch each other. This does all of it at once. What is dirty stays so.
  virtual Result<engine::RelocationOutcome> relocate_home() = 0;
  virtual HomeState home_state() const = 0;
};

}  // namespace mdfs::volume
