// One kind of long work on a mounted volume, done in small steps beside everything else: scrub, defragmentation,
// drain of a disk, balancing. Runner (runner.h) runs it; here is what a kind has to bring.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

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

// "scrub", "defragmentation", "drain", "balancing": for messages.
std::string_view name(OperationKind kind);

inline format::Key operation_key(OperationKind kind) {
  return {MDFS_OBJECT_VOLUME, MDFS_KIND_OPERATION, static_cast<std::uint64_t>(kind)};
}

// What a step has at hand. Lives for one call; one thread.
class OperationRun {
 public:
  OperationRun(OperationKind kind, OperationRecord& where, bool may_write, const std::atomic<bool>& stop,
               const std::atomic<unsigned>& readers)
      : record(where), kind_(kind), may_write_(may_write), stop_(stop), readers_(readers) {}

  // Parameters, the cursor, which a step moves on, and the figures.
  OperationRecord& record;

  // False on a volume that cannot be written, and in a dry run: nothing is changed, but counted all the same.
  bool may_write() const { return may_write_; }
  // Asked to stop: a step that takes long returns soon; what it has not done is done again by the next one.
  bool stopping() const { return stop_; }
  // Within a step that takes long, before each piece of it: waits as long as somebody reads, kMostYieldNs at most.
  void yield() const;
  static constexpr std::int64_t kMostYieldNs = 20'000'000;
  // Bytes read or written on disks, which count against the budget.
  void spend(std::uint64_t bytes) { spent_bytes_ += bytes; }
  std::uint64_t spent_bytes() const { return spent_bytes_; }
  // The record as it is now becomes part of this transaction: the cursor moves with the batch, or not at all.
  void put(store::Transaction& transaction) const { transaction.put(operation_key(kind_), format::encode(record)); }

 private:
  const OperationKind kind_;
  const bool may_write_;
  const std::atomic<bool>& stop_;
  const std::atomic<unsigned>& readers_;
  std::uint64_t spent_bytes_ = 0;
};

// The methods are called by one thread at a time (mostly the background thread of the volume), with no lock held. The
// object outlives the runs; what it remembers between steps beside the record is forgotten in begin() and resume().
class Operation {
 public:
  virtual ~Operation() = default;
  // May it run on a volume that cannot be written?
  virtual bool works_read_only() const { return false; }
  // A new run. Checks the parameters in the record, sets bytes_total and items_total as far as they are known; the
  // error refuses the start. Returns soon.
  virtual Status begin(OperationRun& run) = 0;
  // Resumes where the record's cursor says, perhaps of an earlier mount.
  virtual Status resume(OperationRun& run) = 0;
  // Some of the work: about kStepBytes, a fraction of a second. True when all is done. An error ends the run as
  // failed; what is only bad for a part of the work is noted in the record (note_trouble) instead.
  virtual Result<bool> step(OperationRun& run) = 0;
  // It is cancelled, has ended or failed: what it holds for its next step can go.
  virtual void rest() {}
  // Asked after each step: may a later run resume from what the record says now? If not, it resumes from the record as
  // it was after the last step that said so; what came since is done, and counted, again.
  virtual bool at_checkpoint() const { return true; }
  static constexpr std::uint64_t kStepBytes = 1u << 20;
};

}  // namespace mdfs::maintenance
