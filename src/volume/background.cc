// Background work: write-back and a commit every few seconds, finalization, and discards.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "base/log.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {

// The data of all files, then the times.
Status VolumeImpl::write_back_all(std::int64_t at_least_age_ns) {
  const Status data = engine_->write_back_all(at_least_age_ns);
  const Status times = open_objects_.write_back_times();
  return data.ok() ? times : data;
}

// Makes the absent disks stale, as every write does.
void VolumeImpl::rebuild_if_due() {
  if (!options_.rebuild_delay_ns || store_->space().spare_disks == 0) return;
  if (!automatic_rebuild_.is_due(environment_.monotonic_ns(), store_->gone_disks())) return;
  spdlog::warn("a disk has been lost for {} s: the rebuild of second copies starts by itself",
               *options_.rebuild_delay_ns / 1'000'000'000);
  if (const Status started = start_protecting(); !started.ok())
    spdlog::error("rebuild of second copies: {}", started.error().message());
}

// Twice in the interval, what has been dirty for half of it goes to the disks: nothing waits for longer than all of it.
void VolumeImpl::committer_loop() {
  const auto half = std::chrono::nanoseconds(options_.commit_interval_ns) / 2;
  for (;;) {
    {
      std::unique_lock lock(orphans_mutex_);
      if (committer_wakes_.wait_for(lock, half, [&] { return stopping_; })) return;
    }
    if (store_->read_only()) continue;
    rebuild_if_due();
    const Status written = write_back_all(half.count());
    if (!written.ok()) spdlog::error("write-back: {}", written.error().message());
    open_objects_.close_idle(OpenObjects::kIdleAgeNs);
    if (const Status saved = disk_statistics_.save(); !saved.ok())
      spdlog::warn("counters of the disks: {}", saved.error().message());
    // Deleted blocks are free two commits later. On an idle volume no other thread would make these commits.
    Status committed;
    if (store_->dirty())
      committed = store_->commit();
    else if (store_->has_committed())
      committed = store_->commit_freed();
    if (committed.ok()) committed = store_->finalize();
    if (!committed.ok()) spdlog::critical("commit: {}", committed.error().message());
  }
}

// While a commit is not finalized, a disk that is absent at the next mount delays the volume (store/validation.h). The
// commit is therefore finalized as soon as no thread waits for the next one.
void VolumeImpl::finalizer_loop() {
  constexpr auto kIdle = std::chrono::milliseconds(5);
  while (store_->wait_for_unfinalized(kIdle))
    if (const Status finalized = store_->finalize(); !finalized.ok())
      spdlog::critical("commit: {}", finalized.error().message());
}

// Disks may take their time: no commit waits for this.
void VolumeImpl::discarder_loop() {
  while (store_->discard_freed()) {
  }
}

void VolumeImpl::stop_threads() {
  store_->stop_waiting();
  {
    const std::lock_guard lock(orphans_mutex_);
    stopping_ = true;
  }
  orphans_changed_.notify_all();
  committer_wakes_.notify_all();
  if (reaper_.joinable()) reaper_.join();
  if (committer_.joinable()) committer_.join();
  if (finalizer_.joinable()) finalizer_.join();
  if (discarder_.joinable()) discarder_.join();
}

}  // namespace mdfs::volume
