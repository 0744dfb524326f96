// Runs the long operations of a volume: takes turns, keeps budgets, and saves progress.
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

// Operations of several kinds take turns, step by step, on one thread. Any thread may call any method. The tree holds
// the progress of each (MDFS_KIND_OPERATION). It is saved at start and stop, with each batch that an operation commits
// itself, and every few seconds. An operation that was running when the volume was closed or crashed resumes at the
// next writable mount with all of its disks.
class Runner final : public volume::Operations {
 public:
  // All arguments outlive the runner. `readers`: the number of calls that read data. Before each step operations wait
  // for readers, but at most kMostYieldNs, so that the work ends with any number of readers.
  Runner(store::Store& store, Environment& environment, const std::atomic<unsigned>& readers)
      : store_(store), environment_(environment), readers_(readers) {}
  ~Runner() override;

  // Called before load().
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

  static constexpr std::int64_t kMostYieldNs = mdfs::kMostYieldNs;
  static constexpr std::int64_t kSaveIntervalNs = 5'000'000'000;
  // The budget may be used this far ahead of time, so that steps need not be tiny.
  static constexpr std::int64_t kBurstNs = 100'000'000;
  static constexpr std::uint64_t kLeastBudget = 4096;

 private:
  struct Slot {
    std::unique_ptr<Operation> operation;
    std::optional<OperationRecord> record;      // as last published
    std::optional<OperationRecord> checkpoint;  // a later run resumes from it; changed by the thread that has the slot
    bool busy = false;                          // a thread has the slot, without the lock
    unsigned waiting = 0;                       // threads that wait for the slot; they come before the next step
    std::atomic<bool> stop{false};              // the thread that has the slot should return
    std::int64_t ready_ns = 0;                  // the budget allows the next step
    std::int64_t counted_ns = 0;                // work_ns includes the time up to here
    std::int64_t saved_ns = 0;
    bool saved = true;  // the tree has the present record
    bool running() const { return record && record->running(); }
  };

  Slot& slot(OperationKind kind) { return slots_[static_cast<std::size_t>(kind) - 1]; }
  const Slot& slot(OperationKind kind) const { return slots_[static_cast<std::size_t>(kind) - 1]; }
  Status check_known(OperationKind kind) const;
  // A first write would make an absent disk stale. Work that gives up a lost disk is worth that.
  static bool is_for_lost_disks(OperationKind kind) {
    return kind == OperationKind::kDrain || kind == OperationKind::kProtect;
  }
  bool must_not_write(OperationKind kind) const { return !is_for_lost_disks(kind) && store_.holds_still(); }
  bool may_write(OperationKind kind, const OperationRecord& record) const {
    return !store_.read_only() && !record.dry_run() && !must_not_write(kind);
  }
  // kStaleDisk: the operation is nothing without writes, and must not write now.
  Status check_disks(OperationKind kind, bool dry_run) const;
  // kReadOnly: the store takes no more writes, and the operation is nothing without them. After a failed commit the
  // disks no longer agree with what is in memory, so that nothing can be verified either.
  Status check_store(OperationKind kind) const;
  // What keeps an operation that is running from its work.
  Status may_go_on(OperationKind kind, const OperationRecord& record) const;
  // Waits for the slot and takes it. `stop`: asks the thread that has it to return soon.
  void take(std::unique_lock<std::mutex>& lock, Slot& slot, bool stop);
  // Publishes the record, and releases the slot.
  void give_back(Slot& slot, OperationRecord record);
  // Saves the checkpoint, with the state of the record.
  Status save(OperationKind kind, Slot& slot, OperationRecord& record);
  // The same, then commits if the operation may write.
  Status save_and_commit(OperationKind kind, Slot& slot, OperationRecord& record);
  void wake();
  // The kind that may take a step now; null: none, but perhaps after wait_ns.
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
  std::int64_t yielding_since_ns_ = 0;  // 0: not waiting for readers
  std::uint64_t wakes_ = 0;             // counts reasons to look again
  bool stopping_ = false;
  std::thread thread_;
  std::unique_ptr<Relocator> relocator_;  // null: only in tests of operations
};

}  // namespace mdfs::maintenance
