// Runs the long operations of a volume: whose turn it is, within which budget, and what is remembered.
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
#include "maintenance/operation.h"
#include "maintenance/relocator.h"

namespace mdfs::maintenance {

// Operations of several kinds take turns, step by step, on one thread. Any thread may call any method. Where each
// stands is kept in the tree (MDFS_KIND_OPERATION): when it is started or stopped, with each batch that it commits
// itself, and every few seconds. An operation that was running when the volume was left, in whatever way, goes on when
// it is mounted for writing again, with all disks that it was left with.
class Runner final : public volume::Operations {
 public:
  // All outlive this. `readers`: how many calls read data now; operations wait before each step while there are any,
  // not for longer than kMostYieldNs, so that they come to an end however many readers there are.
  Runner(store::Store& store, Environment& environment, const std::atomic<unsigned>& readers)
      : store_(store), environment_(environment), readers_(readers) {}
  ~Runner() override;

  // Before load().
  void add(OperationKind kind, std::unique_ptr<Operation> operation);
  void add(std::unique_ptr<Relocator> relocator) { relocator_ = std::move(relocator); }

  Status load() override;
  void start_thread() override;
  void stop() override;
  bool moves_data() const override;
  Status start(const OperationRequest& request) override;
  Status cancel(OperationKind kind) override;
  Status resume(OperationKind kind, std::optional<std::uint64_t> budget_bytes_s) override;
  Result<OperationRecord> status(OperationKind kind) const override;
  Turn turn() override;
  Result<engine::RelocationOutcome> relocate_home() override;
  volume::HomeState home_state() const override;

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
        checkpoint;                 // what a later run resumes from; whoever is busy with the slot changes it
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
  // Null: none may run now, but perhaps after wait_ns.
  const OperationKind* choose(std::int64_t now_ns, std::int64_t& wait_ns);
  std::int64_t yield_ns(std::int64_t now_ns);
  void run_step(OperationKind kind, Slot& slot, OperationRecord& record);
  void count_time(Slot& slot, OperationRecord& record);
  void loop();

  store::Store& store_;
  Environment& environment_;
  const std::atomic<unsigned>& readers_;

  mutable std::mutex mutex_;  // guards all below; not held during a step or I/O
  std::condition_variable changed_;
  std::array<Slot, kOperationKinds> slots_;
  unsigned last_ = 0;                   // kind that had the last turn
  std::int64_t yielding_since_ns_ = 0;  // 0: nobody is waited for
  std::uint64_t wakes_ = 0;             // counts reasons to look again
  bool stopping_ = false;
  std::thread thread_;
  std::unique_ptr<Relocator> relocator_;  // null: only in tests of operations
};

}  // namespace mdfs::maintenance
