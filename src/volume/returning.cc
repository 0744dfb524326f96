// Rewritten extents return to the places they left, by and by.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "base/log.h"
#include "volume/operation_moves.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {
namespace {

constexpr std::int64_t kQuietNs = 200'000'000;  // since anybody read or wrote
constexpr std::int64_t kLookNs = 50'000'000;
constexpr std::int64_t kQuietSliceNs = 200'000'000, kBusySliceNs = 10'000'000;
constexpr std::int64_t kBusyShare = 4;             // of the time, beside others
constexpr std::int64_t kCommitNs = 1'000'000'000;  // at most so often, beside others

}  // namespace

// An object that cannot be read is left alone; others report it.
Result<engine::ReturnOutcome> VolumeImpl::return_objects(const std::function<Status(std::uint64_t bytes)>& pace) {
  engine::ReturnOutcome all;
  for (const Ino ino : engine_->objects_to_return()) {
    const Result<engine::ReturnOutcome> one = [&]() -> Result<engine::ReturnOutcome> {
      const Pin pin = table_.pin(ino);
      MDFS_TRY_ASSIGN(const ContentUse use, contents_.use(*pin));
      return engine_->return_extents(*use, pace);
    }();
    if (one.ok()) {
      all.extents += one->extents;
      all.bytes += one->bytes;
      if (pace && !pace(0).ok()) break;
    } else if (is_passed_over(one.error())) {
      engine_->forget_returns(ino);
    } else {
      return one.error();
    }
  }
  returned_extents_ += all.extents;
  returned_bytes_ += all.bytes;
  return all;
}

Result<engine::ReturnOutcome> VolumeImpl::return_extents() {
  MDFS_TRY(check_writable());
  MDFS_TRY(store_->commit_unlinked());
  return return_objects({});
}

ReturnState VolumeImpl::return_state() const {
  return {returned_extents_, returned_bytes_, engine_->extents_to_return()};
}

// All of the time while nobody reads or writes, else a small share of it, in slices. Operations that move extents go
// first.
void VolumeImpl::returner_loop() {
  std::int64_t wait_ns = kLookNs;
  std::int64_t committed_ns = environment_.monotonic_ns();
  for (;;) {
    {
      std::unique_lock lock(orphans_mutex_);
      if (committer_wakes_.wait_for(lock, std::chrono::nanoseconds(wait_ns), [&] { return stopping_; })) return;
    }
    wait_ns = kLookNs;
    if (store_->read_only() || engine_->extents_to_return() == 0 || operations_.one_runs()) continue;
    const std::int64_t begin_ns = environment_.monotonic_ns();
    const bool quiet = engine_->idle_ns() >= kQuietNs;
    const auto pace = [&](std::uint64_t) -> Status {
      const std::int64_t used_ns = environment_.monotonic_ns() - begin_ns;
      const bool still_quiet = engine_->idle_ns() >= kQuietNs;
      const bool over = used_ns > (quiet && still_quiet ? kQuietSliceNs : kBusySliceNs) || store_->read_only();
      return over ? Status(Error{Errc::kBusy, "the time is over"}) : Status{};
    };
    // Places are free two commits later.
    Status status;
    if (engine_->objects_to_return().empty()) {
      if (!quiet && begin_ns - committed_ns < kCommitNs) continue;
      committed_ns = begin_ns;
      status = store_->commit_unlinked();
    }
    if (status.ok()) {
      const Result<engine::ReturnOutcome> returned = return_objects(pace);
      if (!returned.ok()) status = returned.error();
    }
    if (!status.ok()) {
      spdlog::warn("rewritten extents cannot return to their places: {}", status.error().message());
      wait_ns = options_.commit_interval_ns;
    } else if (!quiet) {
      wait_ns = std::max(kLookNs, (kBusyShare - 1) * (environment_.monotonic_ns() - begin_ns));
    }
  }
}

}  // namespace mdfs::volume
