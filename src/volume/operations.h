// The long operations of a volume: started, watched, stopped, and carried on after a crash.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/environment.h"
#include "base/result.h"
#include "volume/operation.h"

namespace mdfs::volume {

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

// At most one operation of each kind runs at a time; those of several kinds take turns, step by step, on one thread.
// Any thread may call any method. Where each stands is kept in the tree (MDFS_KIND_OPERATION): when it is started or
// stopped, with each batch that it commits itself, and every few seconds. An operation that was running when the
// volume was left, in whatever way, goes on when it is mounted for writing again, with all disks that it was left with.
class Operations {
 public:
  // The store outlives this.
  Operations(store::Store& store, Environment& environment) : store_(store), environment_(environment) {}
  ~Operations();

  // Before load().
  void add(OperationKind kind, std::unique_ptr<Operation> operation);
  // What the tree knows; what was running runs again (not on a volume that cannot be written).
  Status load();
  // From now on a thread calls turn().
  void start_thread();
  // Ends the thread after its step and saves where all stand. Nothing runs afterwards.
  void stop();

  // Returns when the operation is recorded on the disks, so that it will go on after a crash. kBusy: one of this kind
  // runs; kReadOnly: the volume cannot be written, and this kind needs that; or what the operation says of its
  // parameters.
  Status start(const OperationRequest& request);
  // Returns when it has stopped. kNoData: none runs.
  Status cancel(OperationKind kind);
  // One that was cancelled or has failed goes on. A budget replaces that of the start, and may be given to one that
  // runs; else that is kBusy. kNoData: there is none, or it is done.
  Status resume(OperationKind kind, std::optional<std::uint64_t> budget_bytes_s);
  // The one that runs or ran last. kNoData: there never was one.
  Result<OperationRecord> status(OperationKind kind) const;

  // One that moves data.
  bool one_moves() const;

  // One step of one operation, if any may go on now: budgets and readers make it wait. For the thread, and for tests
  // that do without it.
  Turn turn();

  // While one exists, operations wait before each step; not for longer than kMostYieldNs, so that they come to an end
  // however many readers there are.
  class Reading {
   public:
    explicit Reading(Operations& operations) : operations_(operations) { ++operations.readers_; }
    ~Reading() { --operations_.readers_; }
    Reading(const Reading&) = delete;

   private:
    Operations& operations_;
  };
  static constexpr std::int64_t kMostYieldNs = OperationRun::kMostYieldNs;
  static constexpr std::int64_t kSaveIntervalNs = 5'000'000'000;
  // A budget may be used so far ahead of time, so that steps need not be smaller than what it gives a moment.
  static constexpr std::int64_t kBurstNs = 100'000'000;
  static constexpr std::uint64_t kLeastBudget = 4096;

 private:
  struct Slot {
    std::unique_ptr<Operation> operation;
    std::optional<OperationRecord> record;  // as last published
    std::optional<OperationRecord>
        checkpoint;                 // what a later run goes on from; whoever is busy with the slot changes it
    bool busy = false;              // somebody works on it, without the lock
    unsigned waiting = 0;           // for it not to be busy: they come before the next step
    std::atomic<bool> stop{false};  // whoever works on it is to return
    std::int64_t ready_ns = 0;      // the budget allows the next step
    std::int64_t counted_ns = 0;    // up to here the time is in work_ns
    std::int64_t saved_ns = 0;
    bool saved = true;  // the tree says what the record says
    bool running() const { return record && record->running(); }
  };

  Slot& slot(OperationKind kind) { return slots_[static_cast<std::size_t>(kind) - 1]; }
  const Slot& slot(OperationKind kind) const { return slots_[static_cast<std::size_t>(kind) - 1]; }
  Status check_known(OperationKind kind) const;
  bool may_write(const OperationRecord& record) const { return !store_.read_only() && !record.dry_run(); }
  // Waits until nobody works on the slot, and takes it. `stop`: asks whoever does to be quick.
  void take(std::unique_lock<std::mutex>& lock, Slot& slot, bool stop);
  // The record is published; others may take the slot.
  void give_back(Slot& slot, OperationRecord record);
  // The checkpoint, in the state that the record is in.
  Status save(OperationKind kind, Slot& slot, OperationRecord& record);
  void wake();
  // Null: none may go on now, but perhaps after wait_ns.
  const OperationKind* choose(std::int64_t now_ns, std::int64_t& wait_ns);
  std::int64_t yield_ns(std::int64_t now_ns);
  void run_step(OperationKind kind, Slot& slot, OperationRecord& record);
  void count_time(Slot& slot, OperationRecord& record);
  void loop();

  store::Store& store_;
  Environment& environment_;
  std::atomic<unsigned> readers_{0};

  mutable std::mutex mutex_;  // guards all below; not held during a step or I/O
  std::condition_variable changed_;
  std::array<Slot, kOperationKinds> slots_;
  unsigned last_ = 0;                   // kind that had the last turn
  std::int64_t yielding_since_ns_ = 0;  // 0: nobody is waited for
  std::uint64_t wakes_ = 0;             // counts reasons to look again
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace mdfs::volume
