// Rewritten extents return to the places they left, by and by.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "volume/records.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {
namespace {

constexpr std::int64_t kReturningNs = 50'000'000, kNothingNs = 1'000'000'000;
constexpr std::int64_t kQuietSliceNs = 200'000'000, kBusySliceNs = 10'000'000;
constexpr std::int64_t kBusyShare = 4;             // of the time, beside others
constexpr std::int64_t kCommitNs = 1'000'000'000;  // between commits for this alone

}  // namespace

// Behind the object that had the last turn the next one begins. One that cannot be read is left alone: whoever reads it
// hears why.
engine::ReturnOutcome VolumeImpl::return_objects(const engine::Pace& pace) {
  const std::lock_guard lock(returning_mutex_);
  std::vector<std::uint64_t> objects = engine_->objects_to_return();
  std::rotate(objects.begin(), std::upper_bound(objects.begin(), objects.end(), last_to_return_), objects.end());
  engine::ReturnOutcome all;
  for (const Ino ino : objects) {
    last_to_return_ = ino;
    const Result<engine::ReturnOutcome> one = [&]() -> Result<engine::ReturnOutcome> {
      const Pin pin = table_.pin(ino);
      if (pin->unlinked) return Error{Errc::kNotFound, "removed"};
      MDFS_TRY_ASSIGN(const ContentUse use, contents_.use(*pin));
      return engine_->return_extents(*use, pace);
    }();
    if (!one.ok()) {
      engine_->forget_returns(ino);
      if (!is_passed_over(one.error()))
        spdlog::warn("extents of inode {} cannot be relocated home: {}", ino, one.error().message());
      continue;
    }
    all += *one;
    if (pace && !pace(0).ok()) break;
  }
  returned_extents_ += all.extents;
  returned_bytes_ += all.bytes;
  return all;
}

Result<engine::ReturnOutcome> VolumeImpl::return_extents() {
  MDFS_TRY(check_writable());
  MDFS_TRY(store_->commit_unlinked());
  engine::ReturnOutcome all;
  for (std::uint64_t left = UINT64_MAX; engine_->extents_to_return() < left;) {
    left = engine_->extents_to_return();
    all += return_objects({});
  }
  return all;
}

ReturnState VolumeImpl::return_state() const {
  return {returned_extents_, returned_bytes_, engine_->extents_to_return()};
}

bool VolumeImpl::stopping() {
  const std::lock_guard lock(orphans_mutex_);
  return stopping_;
}

// All of the time while nobody reads or writes, else a small share of it, in slices. Operations that move extents go
// first.
void VolumeImpl::returner_loop() {
  std::int64_t wait_ns = kReturningNs;
  std::int64_t committed_ns = environment_.monotonic_ns();
  for (;;) {
    {
      std::unique_lock lock(orphans_mutex_);
      if (committer_wakes_.wait_for(lock, std::chrono::nanoseconds(wait_ns), [&] { return stopping_; })) return;
    }
    wait_ns = kNothingNs;
    if (store_->read_only() || engine_->extents_to_return() == 0 || operations_->moves_data()) continue;
    wait_ns = kReturningNs;
    const std::int64_t begin_ns = environment_.monotonic_ns();
    const bool quiet = engine_->is_quiet();
    bool has_moved = false;
    const auto pace = [&](std::uint64_t bytes) -> Status {
      const std::int64_t used_ns = environment_.monotonic_ns() - begin_ns;
      const bool still_quiet = quiet && engine_->is_quiet();
      const bool is_first = bytes > 0 && !std::exchange(has_moved, true);  // so that each turn brings something
      const bool over = used_ns > (still_quiet ? kQuietSliceNs : kBusySliceNs) && !is_first;
      return over || stopping() || store_->read_only() ? Status(Error{Errc::kBusy, "the turn is over"}) : Status{};
    };
    // Places are free two commits later.
    if (engine_->objects_to_return().empty()) {
      if (begin_ns - committed_ns < kCommitNs) continue;
      committed_ns = begin_ns;
      if (!store_->commit_unlinked().ok()) wait_ns = kNothingNs;  // the committer will meet the same, and tell
      continue;
    }
    return_objects(pace);
    if (!quiet) {
      wait_ns = std::max(kReturningNs, (kBusyShare - 1) * (environment_.monotonic_ns() - begin_ns));
    }
  }
}

}  // namespace mdfs::volume
