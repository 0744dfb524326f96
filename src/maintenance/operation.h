// The interface of one kind of long work on a mounted volume, done in small steps: scrub, defragmentation, drain of a
// disk, balancing. Runner (runner.h) runs it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/background_pace.h"
#include "base/result.h"
#include "format/operation.h"
#include "store/store.h"
#include "volume/maintained_volume.h"
#include "volume/operations.h"

namespace mdfs::maintenance {

using format::OperationRecord;
using volume::Ino;
using volume::kOperationKinds;
using volume::MaintainedVolume;
using volume::OperationKind;
using volume::OperationRequest;
using volume::Turn;

inline format::Key operation_key(OperationKind kind) {
  return {MDFS_OBJECT_VOLUME, MDFS_KIND_OPERATION, static_cast<std::uint64_t>(kind)};
}

// The environment of one step. Lives for one call; one thread.
class OperationRun {
 public:
  OperationRun(OperationKind kind, OperationRecord& where, bool may_write, const std::atomic<bool>& stop,
               const std::atomic<unsigned>& readers)
      : record(where), kind_(kind), may_write_(may_write), stop_(stop), readers_(readers) {}

  // Parameters, the cursor, which a step advances, and the figures.
  OperationRecord& record;

  // False on a read-only volume and in a dry run: the step counts changes and makes none.
  bool may_write() const { return may_write_; }
  // True if a long step should return soon. The next step repeats the unfinished part.
  bool stopping() const { return stop_; }
  // Called within a long step, before each part of it. Waits while calls read data, kMostYieldNs at most.
  void yield() const;
  // Counts bytes read or written on disks against the budget.
  void spend(std::uint64_t bytes) { spent_bytes_ += bytes; }
  std::uint64_t spent_bytes() const { return spent_bytes_; }
  // Puts the present record into this transaction, so that the cursor and the batch become durable together.
  void put(store::Transaction& transaction) const { transaction.put(operation_key(kind_), format::encode(record)); }

 private:
  const OperationKind kind_;
  const bool may_write_;
  const std::atomic<bool>& stop_;
  const std::atomic<unsigned>& readers_;
  std::uint64_t spent_bytes_ = 0;
};

// One thread at a time calls the methods (mostly the volume's background thread), without locks. The object outlives
// the runs. begin() and resume() forget all state between steps other than the record.
class Operation {
 public:
  virtual ~Operation() = default;
  // True if it may run on a read-only volume.
  virtual bool works_read_only() const { return false; }
  // Begins a new run. Checks the parameters in the record, and sets bytes_total and items_total as far as they are
  // known. An error refuses the start. Returns soon.
  virtual Status begin(OperationRun& run) = 0;
  // Resumes at the record's cursor, which may be of an earlier mount.
  virtual Status resume(OperationRun& run) = 0;
  // Does about kStepBytes of the work, in a fraction of a second. True when all is done. An error ends the run as
  // failed. An error of a part of the work is noted in the record (note_error) instead.
  virtual Result<bool> step(OperationRun& run) = 0;
  // The run was cancelled, has ended or failed: releases the state for the next step.
  virtual void rest() {}
  // Asked when a run has ended, when no start() has found it running since: true if there is work that came too late
  // for it, and was refused a run of its own. Then the run continues. Any thread may ask.
  virtual bool has_new_work() const { return false; }
  // Called after each step: true if a later run may resume from the present record. Otherwise it resumes from the
  // record after the last step that returned true; later work is done, and counted, again.
  virtual bool at_checkpoint() const { return true; }
  static constexpr std::uint64_t kStepBytes = 1u << 20;
};

// One kind of operation.
struct OperationInfo {
  OperationKind kind;
  std::string_view name;  // for messages: "defragmentation"
  // Null: the volume cannot do it.
  std::unique_ptr<Operation> (*make)(MaintainedVolume& volume);
};

// All kinds, in the order of their numbers, which begin with 1.
std::span<const OperationInfo> operation_table();
// The kind is one of the table (abort).
std::string_view name(OperationKind kind);

}  // namespace mdfs::maintenance
