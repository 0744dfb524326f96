// Long operations: turns, budgets and saved progress.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"

namespace mdfs::maintenance {
namespace {

constexpr std::int64_t kLongestWaitNs = 1'000'000'000;  // of the thread, before it looks at the clock again
constexpr std::int64_t kLongestDebtNs = 3'600'000'000'000;

std::string text_of(OperationKind kind) { return std::string(name(kind)); }

std::string figures(const OperationRecord& record) {
  return fmt::format("{} of {} bytes, {} items examined, {} changed, {} failed", record.bytes_done, record.bytes_total,
                     record.items_done, record.items_changed, record.items_failed);
}

}  // namespace

void OperationRun::yield() const {
  for (std::int64_t waited_ns = 0; readers_ > 0 && !stop_ && waited_ns < kMostYieldNs; waited_ns += kYieldNapNs)
    std::this_thread::sleep_for(std::chrono::nanoseconds(kYieldNapNs));
}

Runner::~Runner() { stop(); }

void Runner::add(OperationKind kind, std::unique_ptr<Operation> operation) {
  slot(kind).operation = std::move(operation);
}

Status Runner::check_known(OperationKind kind) const {
  const auto known = operation_table();
  if (std::none_of(known.begin(), known.end(), [&](const OperationInfo& row) { return row.kind == kind; }))
    return {Errc::kInvalidArgument, "there is no such operation"};
  if (!slot(kind).operation) return {Errc::kNotSupported, text_of(kind) + " is unknown to this version"};
  return {};
}

Status Runner::check_disks(OperationKind kind, bool dry_run) const {
  if (dry_run || kind == OperationKind::kScrub || !must_not_write(kind)) return {};
  return {Errc::kStaleDisk, fmt::format("a disk is missing, and the {} would make it stale: attach it and mount again, "
                                        "or give it up with 'mdfs disk remove'",
                                        name(kind))};
}

Status Runner::check_store(OperationKind kind) const {
  if (!store_.read_only() || (slot(kind).operation->works_read_only() && !store_.has_failed())) return {};
  return {Errc::kReadOnly, store_.read_only_reason()};
}

Status Runner::may_go_on(OperationKind kind, const OperationRecord& record) const {
  MDFS_TRY(check_store(kind));
  return check_disks(kind, record.dry_run());
}

Status Runner::load() {
  const format::Key first{MDFS_OBJECT_VOLUME, MDFS_KIND_OPERATION, 0};
  MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                  store_.scan(first, operation_key(operation_table().back().kind), kOperationKinds + 1));
  for (const store::Item& item : items) {
    const auto kind = static_cast<OperationKind>(item.key.offset);
    if (!check_known(kind).ok()) continue;
    auto decoded = format::decode_operation(item.value);
    if (!decoded.ok()) {
      spdlog::error("{}: its record is damaged ({}); run mdfsck to remove it", name(kind), decoded.error().message());
      continue;
    }
    OperationRecord record = std::move(*decoded);
    Slot& where = slot(kind);
    if (record.running() && store_.read_only()) {
      record.state = MDFS_OPERATION_CANCELLED;  // for this mount
      record.reason = "mounted read-only";
    } else if (record.running() && store_.holds_still()) {
      record.state = MDFS_OPERATION_CANCELLED;  // for this mount, unless a user resumes it
      record.reason =
          fmt::format("a disk is missing and would become stale; the operation resumes when all disks are present{}",
                      must_not_write(kind) ? "" : ", or by 'resume'");
    } else if (record.running()) {
      OperationRun run(kind, record, may_write(kind, record), where.stop, readers_);
      if (const Status status = where.operation->resume(run); status.ok()) {
        spdlog::info("{}: resumes at its checkpoint, {}", name(kind), figures(record));
      } else {
        record.state = MDFS_OPERATION_FAILED;
        record.reason = status.error().message();
        spdlog::error("{}: cannot resume: {}", name(kind), record.reason);
      }
    }
    where.counted_ns = where.ready_ns = where.saved_ns = environment_.monotonic_ns();
    where.checkpoint = record;
    where.record = std::move(record);
  }
  return {};
}

bool Runner::moves_data() const {
  const std::lock_guard lock(mutex_);
  const auto known = operation_table();
  return std::any_of(known.begin(), known.end(), [&](const OperationInfo& row) {
    return row.kind != OperationKind::kScrub && slot(row.kind).running();
  });
}

void Runner::start_thread() {
  thread_ = std::thread([this] { loop(); });
  if (relocator_ && !store_.read_only()) relocator_->start_thread();
}

void Runner::wake() {
  ++wakes_;
  changed_.notify_all();
}

void Runner::stop() {
  if (relocator_) relocator_->stop();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (Slot& slot : slots_) slot.stop = true;
    wake();
  }
  if (thread_.joinable()) thread_.join();
  for (const OperationInfo& row : operation_table()) {
    std::unique_lock lock(mutex_);
    Slot& where = slot(row.kind);
    take(lock, where, true);
    const bool known = where.record && !where.saved;
    OperationRecord record = where.record.value_or(OperationRecord());
    lock.unlock();
    if (known) (void)save(row.kind, where, record);  // it logs its error itself
    lock.lock();
    if (known) where.record = std::move(record);
    where.busy = false;
    wake();
  }
}

void Runner::take(std::unique_lock<std::mutex>& lock, Slot& slot, bool stop) {
  if (stop) slot.stop = true;
  ++slot.waiting;
  changed_.wait(lock, [&] { return !slot.busy; });
  --slot.waiting;
  slot.busy = true;
  slot.stop = stopping_;
}

void Runner::give_back(Slot& slot, OperationRecord record) {
  const std::lock_guard lock(mutex_);
  if (record.state == MDFS_OPERATION_DONE && !record.dry_run() && slot.operation->has_new_work()) {
    record.state = MDFS_OPERATION_RUNNING;
    slot.saved = false;
    slot.saved_ns = 0;  // the next step saves it
  }
  slot.record = std::move(record);
  slot.busy = false;
  wake();
}

// The item counts as freeing: it finds room on a full volume, where an operation may be what makes room. What may not
// write is known to this mount only.
Status Runner::save(OperationKind kind, Slot& slot, OperationRecord& record) {
  record.updated_ns = environment_.now_ns();
  slot.saved = true;
  if (!may_write(kind, record)) return {};
  OperationRecord kept = slot.checkpoint.value_or(record);
  kept.state = record.state;
  kept.reason = record.reason;
  kept.budget_bytes_s = record.budget_bytes_s;
  kept.work_ns = record.work_ns;
  kept.updated_ns = record.updated_ns;
  const Status status = store_.transact(store::Purpose::kFreeing, [&](store::Transaction& transaction) -> Status {
    transaction.put(operation_key(kind), format::encode(kept));
    return {};
  });
  slot.saved_ns = environment_.monotonic_ns();
  slot.saved = status.ok();
  if (!status.ok()) spdlog::warn("{}: its progress cannot be recorded: {}", name(kind), status.error().message());
  return status;
}

Status Runner::save_and_commit(OperationKind kind, Slot& slot, OperationRecord& record) {
  MDFS_TRY(save(kind, slot, record));
  return may_write(kind, record) ? store_.commit() : Status();
}

void Runner::count_time(Slot& slot, OperationRecord& record) {
  const std::int64_t now_ns = environment_.monotonic_ns();
  record.work_ns += static_cast<std::uint64_t>(std::max<std::int64_t>(0, now_ns - slot.counted_ns));
  slot.counted_ns = now_ns;
}

Status Runner::start(const OperationRequest& request) {
  MDFS_TRY(check_known(request.kind));
  Slot& where = slot(request.kind);
  if (request.budget_bytes_s != 0 && request.budget_bytes_s < kLeastBudget)
    return {Errc::kInvalidArgument, fmt::format("a budget must be at least {} bytes a second", kLeastBudget)};
  MDFS_TRY(check_store(request.kind));
  MDFS_TRY(check_disks(request.kind, request.dry_run));
  std::unique_lock lock(mutex_);
  const auto check = [&]() -> Status {
    if (stopping_) return {Errc::kReadOnly, "the volume is being closed"};
    if (where.running())
      return {Errc::kBusy, fmt::format("a {} is already running; cancel it first", name(request.kind))};
    return {};
  };
  MDFS_TRY(check());
  take(lock, where, false);
  if (const Status status = check(); !status.ok()) {
    where.busy = false;
    wake();
    return status;
  }
  std::optional<OperationRecord> before = where.record;
  lock.unlock();

  OperationRecord record;
  record.flags = (request.dry_run ? MDFS_OPERATION_DRY_RUN : 0u) | (request.object != 0 ? MDFS_OPERATION_OBJECT : 0u);
  record.object = request.object;
  record.budget_bytes_s = request.budget_bytes_s;
  record.threshold = request.threshold;
  record.parameters = request.parameters;
  record.started_ns = record.updated_ns = environment_.now_ns();
  record.disks.resize(store_.disk_count());
  where.counted_ns = where.ready_ns = environment_.monotonic_ns();
  OperationRun run(request.kind, record, may_write(request.kind, record), where.stop, readers_);
  const std::optional<OperationRecord> checkpoint = where.checkpoint;
  Status status = where.operation->begin(run);
  where.checkpoint = record;
  if (status.ok()) status = save_and_commit(request.kind, where, record);
  if (!status.ok()) {
    where.operation->rest();
    lock.lock();
    where.checkpoint = checkpoint;
    where.record = std::move(before);
    where.busy = false;
    wake();
    return status;
  }
  spdlog::info("{}: started{}", name(request.kind), record.dry_run() ? ", nothing will be changed" : "");
  give_back(where, std::move(record));
  return {};
}

Status Runner::cancel(OperationKind kind) {
  MDFS_TRY(check_known(kind));
  Slot& where = slot(kind);
  std::unique_lock lock(mutex_);
  if (!where.running()) return {Errc::kNoData, fmt::format("no {} is running", name(kind))};
  take(lock, where, true);
  OperationRecord record = *where.record;
  lock.unlock();
  Status status;
  if (record.running()) {
    count_time(where, record);
    record.state = MDFS_OPERATION_CANCELLED;
    where.operation->rest();
    status = save_and_commit(kind, where, record);
    spdlog::info("{}: cancelled, {}", name(kind), figures(record));
  } else {
    status = Error{Errc::kNoData, fmt::format("the {} has just ended", name(kind))};
  }
  give_back(where, std::move(record));
  return status;
}

Status Runner::resume(OperationKind kind, std::optional<std::uint64_t> budget_bytes_s) {
  MDFS_TRY(check_known(kind));
  if (budget_bytes_s && *budget_bytes_s != 0 && *budget_bytes_s < kLeastBudget)
    return {Errc::kInvalidArgument, fmt::format("a budget must be at least {} bytes a second", kLeastBudget)};
  Slot& where = slot(kind);
  MDFS_TRY(check_store(kind));
  std::unique_lock lock(mutex_);
  if (!where.record) return {Errc::kNoData, fmt::format("there is no {} to resume", name(kind))};
  take(lock, where, false);
  OperationRecord record = *where.record;
  const bool closing = stopping_;
  lock.unlock();
  Status status;
  if (closing) {
    status = Error{Errc::kReadOnly, "the volume is being closed"};
  } else if (record.state == MDFS_OPERATION_DONE) {
    status = Error{Errc::kNoData, fmt::format("the {} is done; start another one", name(kind))};
  } else if (record.running() && !budget_bytes_s) {
    status = Error{Errc::kBusy, fmt::format("the {} is running", name(kind))};
  } else if (Status allowed = check_disks(kind, record.dry_run()); !allowed.ok()) {
    status = std::move(allowed);
  } else {
    const OperationRecord before = record;
    where.ready_ns = environment_.monotonic_ns();
    if (!record.running()) {
      where.counted_ns = where.ready_ns;
      if (where.checkpoint) record = *where.checkpoint;
      record.work_ns = before.work_ns;
      record.state = MDFS_OPERATION_RUNNING;
      record.reason.clear();
      record.disks.resize(std::max<std::size_t>(record.disks.size(), store_.disk_count()));
      OperationRun run(kind, record, may_write(kind, record), where.stop, readers_);
      status = where.operation->resume(run);
      where.checkpoint = record;
    }
    if (budget_bytes_s) record.budget_bytes_s = *budget_bytes_s;
    if (status.ok()) status = save_and_commit(kind, where, record);
    if (status.ok())
      spdlog::info("{}: resumed, {}", name(kind), figures(record));
    else
      record = before;
  }
  give_back(where, std::move(record));
  return status;
}

Result<OperationRecord> Runner::status(OperationKind kind) const {
  MDFS_TRY(check_known(kind));
  const std::lock_guard lock(mutex_);
  const Slot& where = slot(kind);
  if (!where.record) return {Errc::kNoData, fmt::format("no {} has ever run on this volume", name(kind))};
  return *where.record;
}

Result<engine::RelocationOutcome> Runner::relocate_home() {
  MDFS_CHECK(relocator_ != nullptr);
  return relocator_->relocate_home();
}

volume::HomeState Runner::home_state() const {
  MDFS_CHECK(relocator_ != nullptr);
  return relocator_->home_state();
}

// The next one after the last that is running and within its budget; else when one will be.
const OperationKind* Runner::choose(std::int64_t now_ns, std::int64_t& wait_ns) {
  wait_ns = Turn::kIdle;
  for (unsigned i = 1; i <= kOperationKinds; ++i) {
    const OperationKind& kind = operation_table()[(last_ + i) % kOperationKinds].kind;
    const Slot& where = slot(kind);
    if (!where.running() || where.busy || where.waiting > 0) continue;
    if (where.ready_ns <= now_ns) return &kind;
    wait_ns = std::min(wait_ns, where.ready_ns - now_ns);
  }
  return nullptr;
}

std::int64_t Runner::yield_ns(std::int64_t now_ns) {
  if (readers_ == 0) return 0;
  if (yielding_since_ns_ == 0) yielding_since_ns_ = now_ns;
  return now_ns - yielding_since_ns_ < kMostYieldNs ? kYieldNapNs : 0;
}

Turn Runner::turn() {
  Turn turn;
  std::unique_lock lock(mutex_);
  const std::int64_t now_ns = environment_.monotonic_ns();
  const OperationKind* kind = stopping_ ? nullptr : choose(now_ns, turn.wait_ns);
  if (stopping_) turn.wait_ns = Turn::kIdle;
  if (kind == nullptr) return turn;
  turn.wait_ns = yield_ns(now_ns);
  if (turn.wait_ns > 0) return turn;
  yielding_since_ns_ = 0;
  last_ = static_cast<unsigned>(*kind) - 1;
  Slot& where = slot(*kind);
  where.busy = true;
  where.stop = false;
  OperationRecord record = *where.record;
  lock.unlock();
  run_step(*kind, where, record);
  give_back(where, std::move(record));
  turn.worked = true;
  return turn;
}

void Runner::run_step(OperationKind kind, Slot& where, OperationRecord& record) {
  const std::int64_t began_ns = environment_.monotonic_ns();
  OperationRun run(kind, record, may_write(kind, record), where.stop, readers_);
  const auto step = [&]() -> Result<bool> {
    MDFS_TRY(may_go_on(kind, record));
    MDFS_TRY_ASSIGN(const bool is_over, where.operation->step(run));
    if (is_over) MDFS_TRY(may_go_on(kind, record));  // an operation that may not write finds nothing to do
    return is_over;
  };
  Result<bool> done = step();
  where.saved = false;
  count_time(where, record);
  if (done.ok() && (*done || where.operation->at_checkpoint())) where.checkpoint = record;
  if (record.budget_bytes_s > 0) {
    const double cost_ns = 1e9 * static_cast<double>(run.spent_bytes()) / static_cast<double>(record.budget_bytes_s);
    where.ready_ns = std::max(where.ready_ns, began_ns - kBurstNs) +
                     static_cast<std::int64_t>(std::min(cost_ns, static_cast<double>(kLongestDebtNs)));
  }
  if (done.ok() && !*done) {
    if (environment_.monotonic_ns() - where.saved_ns >= kSaveIntervalNs) (void)save(kind, where, record);
    return;
  }
  where.operation->rest();
  if (done.ok()) {
    record.state = MDFS_OPERATION_DONE;
    // It is done once it is on the disks.
    if (const Status committed = save_and_commit(kind, where, record); committed.ok())
      spdlog::info("{}: done, {}", name(kind), figures(record));
    else
      done = committed.error();
  }
  if (done.ok()) return;
  record.state = MDFS_OPERATION_FAILED;
  // The reason of the volume may be longer than there is room for here.
  record.reason = done.error().code == Errc::kReadOnly ? "the volume has become read-only: see mdfs volume status"
                                                       : done.error().message();
  spdlog::error("{}: ended: {}", name(kind), record.reason);
  (void)save(kind, where, record);
}

void Runner::loop() {
  std::uint64_t seen = 0;
  for (;;) {
    const Turn now = turn();
    std::unique_lock lock(mutex_);
    if (stopping_) return;
    if (now.worked) continue;
    const auto woken = [&] { return stopping_ || wakes_ != seen; };
    if (now.wait_ns == Turn::kIdle)
      changed_.wait(lock, woken);
    else
      changed_.wait_for(lock, std::chrono::nanoseconds(std::min(now.wait_ns, kLongestWaitNs)), woken);
    seen = wakes_;
  }
}

}  // namespace mdfs::maintenance
