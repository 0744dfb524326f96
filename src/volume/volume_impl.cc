// The volume: opening and closing, and the one way in which the tree is changed.
// SPDX-License-Identifier: Apache-2.0
#include "volume/volume_impl.h"

#include "base/log.h"

namespace mdfs::volume {
namespace {

constexpr unsigned kFallbackCommits = 3;  // until what was freed may be used again

}  // namespace

VolumeImpl::VolumeImpl(std::unique_ptr<store::Store> store, std::unique_ptr<engine::Engine> engine,
                       const VolumeOptions& options, Environment& environment, const MakeOperations& make_operations)
    : options_(options),
      environment_(environment),
      store_(std::move(store)),
      opened_read_only_(store_->read_only()),
      engine_(std::move(engine)),
      table_([this](Ino ino) { orphan_unheld(ino); }),
      placements_(*store_, environment.random()),
      open_objects_(*store_, secret_, *engine_, table_, placements_, environment),
      disk_statistics_(*store_, environment),
      automatic_rebuild_(options.rebuild_delay_ns.value_or(0)),
      operations_(make_operations(*this)) {}

VolumeImpl::~VolumeImpl() {
  const Status status = close();
  if (!status.ok()) spdlog::error("closing the volume: {}", status.error().message());
  operations_.reset();  // an unfinished one holds an object, which may be an orphan then
}

Status VolumeImpl::start() {
  MDFS_TRY_ASSIGN(secret_, read_secret(*store_));
  // A damaged volume is mounted all the same, as far as it can be.
  if (const Status loaded = disk_statistics_.load(); !loaded.ok())
    spdlog::error("counters of the disks: {}", loaded.error().message());
  if (const Status loaded = operations_->load(); !loaded.ok())
    spdlog::error("operations of the last mount: {}", loaded.error().message());
  if (options_.commit_interval_ns > 0) operations_->start_thread();
  if (store_->read_only()) return {};
  MDFS_TRY(queue_orphans_of_last_mount());
  if (options_.commit_interval_ns > 0) {
    reaper_ = std::thread([this] { reaper_loop(); });
    committer_ = std::thread([this] { committer_loop(); });
    finalizer_ = std::thread([this] { finalizer_loop(); });
    discarder_ = std::thread([this] { discarder_loop(); });
  } else {
    free_queued_orphans(INT64_MAX);
  }
  return {};
}

Status VolumeImpl::close() {
  constexpr std::int64_t kFreeingBudgetNs = 2'000'000'000;  // the rest is left to the next mount
  const std::lock_guard lock(close_mutex_);
  if (closed_) return {};
  operations_->stop();
  stop_threads();
  Status status;
  if (!store_->read_only()) {
    status = write_back_all(0);
    free_queued_orphans(kFreeingBudgetNs);
  } else if (!opened_read_only_) {
    status = Error{Errc::kIo, "unsynced data are lost: " + store_->read_only_reason()};
  }
  closed_ = true;
  const Status closed = open_objects_.close_all();
  if (status.ok()) status = closed;
  if (!store_->read_only()) {
    if (const Status saved = disk_statistics_.save(); !saved.ok())
      spdlog::warn("counters of the disks: {}", saved.error().message());
    Status committed = store_->commit();
    unsigned commits = 2 * kFallbackCommits;  // so that nodes of the tree find back to where they belong
    for (std::uint64_t last = 0; committed.ok() && last != store_->generation() && commits-- > 0;) {
      last = store_->generation();
      committed = store_->commit();
    }
    if (committed.ok()) committed = store_->finalize();
    if (committed.ok()) {
      committed = store_->examine_disks();
      if (!committed.ok())
        committed = Error{committed.error().code, committed.error().where +
                                                      "; all data were written, and what that disk holds is lost with "
                                                      "the unmount, unless it was copied before"};
    }
    if (status.ok()) status = committed;
  }
  return status;
}

// The pin and the use live as long as what is returned.
Result<std::shared_ptr<engine::OpenObject>> VolumeImpl::open_object(Ino ino) {
  struct Held {
    Pin pin;
    ObjectUse use;
  };
  auto held = std::make_shared<Held>();
  held->pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(held->use, open_objects_.use(*held->pin));
  engine::OpenObject* const object = &*held->use;
  return std::shared_ptr<engine::OpenObject>(std::move(held), object);
}

void VolumeImpl::set_change_listener(ChangeListener listener) {
  std::unique_lock lock(listener_mutex_);
  listener_ = listener ? std::make_shared<const ChangeListener>(std::move(listener)) : nullptr;
  listener_idle_.wait(lock, [&] { return listener_calls_ == 0; });
}

void VolumeImpl::tell_listener(Ino ino, std::uint64_t offset, std::uint64_t length) {
  std::shared_ptr<const ChangeListener> listener;
  {
    const std::lock_guard lock(listener_mutex_);
    if (!listener_) return;
    listener = listener_;
    ++listener_calls_;
  }
  (*listener)(ino, offset, length);
  const std::lock_guard lock(listener_mutex_);
  if (--listener_calls_ == 0) listener_idle_.notify_all();
}

void VolumeImpl::set_privileges_listener(PrivilegesListener listener) {
  std::unique_lock lock(listener_mutex_);
  privileges_listener_ = listener ? std::make_shared<const PrivilegesListener>(std::move(listener)) : nullptr;
  listener_idle_.wait(lock, [&] { return listener_calls_ == 0; });
}

void VolumeImpl::tell_privileges_listener(Ino ino) {
  std::shared_ptr<const PrivilegesListener> listener;
  {
    const std::lock_guard lock(listener_mutex_);
    if (!privileges_listener_) return;
    listener = privileges_listener_;
    ++listener_calls_;
  }
  (*listener)(ino);
  const std::lock_guard lock(listener_mutex_);
  if (--listener_calls_ == 0) listener_idle_.notify_all();
}

bool VolumeImpl::keeps_atime() const {
  return options_.atime != AtimeMode::kNoAtime && whole_ && !closed_ && !store_->read_only();
}

Status VolumeImpl::check_writable() const {
  if (closed_) return Error{Errc::kReadOnly, "the volume has been closed"};
  if (store_->read_only()) return Error{Errc::kReadOnly, store_->read_only_reason()};
  return {};
}

Status VolumeImpl::change(store::Purpose purpose, const std::function<Status(Change&)>& body) {
  MDFS_TRY(check_writable());
  const auto attempt = [&] {
    return store_->transact(purpose, [&](store::Transaction& transaction) {
      Change change{transaction, environment_.now_ns()};
      return body(change);
    });
  };
  if (purpose != store::Purpose::kFreeing) return with_room(attempt);
  // Frees orphans itself, perhaps; reservations of other files come back when these files are written.
  Status status = attempt();
  if (!status.ok() && status.error().code == Errc::kNoSpace && engine_->write_back_all(0).ok()) status = attempt();
  return status;
}

Status VolumeImpl::with_room(const std::function<Status()>& attempt) {
  Status status = attempt();
  if (!status.ok() && status.error().code == Errc::kNoSpace && reclaim()) status = attempt();
  return status;
}

// Space comes back from reservations that are larger than what is then written, from orphans, and from blocks that were
// freed and wait until no state that recovery may fall back to holds them; into the reserve as well, which counts for
// what frees. False if the volume cannot commit.
bool VolumeImpl::reclaim() {
  const std::lock_guard lock(reclaim_mutex_);
  free_queued_orphans(INT64_MAX);
  const Status written = engine_->write_back_all(0);
  if (!written.ok()) spdlog::warn("write-back to free space: {}", written.error().message());
  for (unsigned i = 0; i < kFallbackCommits && store_->dirty(); ++i)
    if (!store_->commit().ok()) return false;
  return true;
}

}  // namespace mdfs::volume
