// Relocation without being asked: which candidates, when, and how much at a time.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/relocator.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/log.h"
#include "volume/records.h"

namespace mdfs::maintenance {

using engine::RelocationCandidate;
using engine::RelocationReason;

namespace {

// Work on what writers have left, which no user asked for.
bool is_consolidation(RelocationReason reason) {
  return reason == RelocationReason::kInStrips || reason == RelocationReason::kUngrouped;
}

}  // namespace

std::deque<RelocationCandidate> Relocator::candidates(bool consolidates, bool home) const {
  std::vector<RelocationCandidate> all = volume_.engine().relocation_candidates();
  std::erase_if(all, [&](const RelocationCandidate& one) {
    return is_consolidation(one.reason) ? !consolidates : one.reason == RelocationReason::kAwayFromHome && !home;
  });
  const auto next = std::upper_bound(all.begin(), all.end(), last_,
                                     [](Ino last, const RelocationCandidate& one) { return last < one.object; });
  std::rotate(all.begin(), next, all.end());
  return {all.begin(), all.end()};
}

void Relocator::relocate(const RelocationCandidate& candidate, const engine::Pace& pace,
                         engine::RelocationOutcome& outcome) {
  last_ = candidate.object;
  Result<engine::RelocationOutcome> one = [&]() -> Result<engine::RelocationOutcome> {
    MDFS_TRY_ASSIGN(const auto open, volume_.open_object(candidate.object));
    return volume_.engine().relocate(*open, candidate.reason, pace);
  }();
  if (one.ok()) {
    outcome += *one;
    if (candidate.reason != RelocationReason::kAwayFromHome) return;
    home_extents_ += one->extents;
    home_bytes_ += one->bytes;
    return;
  }
  volume_.engine().forget_relocation(candidate);
  if (!volume::is_passed_over(one.error()))
    spdlog::warn("extents of inode {} cannot be relocated: {}", candidate.object, one.error().message());
}

// Home blocks that were left are free two commits later. Returns how long to wait.
std::int64_t Relocator::free_home_blocks(std::int64_t now_ns) {
  if (now_ns - committed_ns_ < kCommitNs) return kLookNs;
  committed_ns_ = now_ns;
  return volume_.store().commit_freed().ok() ? kLookNs : kNothingNs;  // the committer reports the same error
}

bool Relocator::spread_nodes() {
  const store::Store& store = volume_.store();
  if (!store.wants_spread() || !store.is_whole() || store.holds_still()) return false;
  const auto done = volume_.store().spread_nodes();
  if (!done.ok()) spdlog::warn("copies of tree nodes stay on too few disks: {}", done.error().message());
  return done.ok() && !*done;
}

Turn Relocator::turn() {
  const std::lock_guard lock(working_mutex_);
  if (volume_.store().read_only()) return {false, kNothingNs};
  engine::Engine& engine = volume_.engine();
  const auto now_ns = [&] { return volume_.environment().monotonic_ns(); };
  const std::int64_t begin_ns = now_ns();
  const bool idle = engine.is_quiet(), home = !moves_data_();
  const auto slice_is_over = [&] {
    return now_ns() - begin_ns > (idle && engine.is_quiet() ? kQuietSliceNs : kBusySliceNs);
  };
  const auto wait_of_busy_ns = [&] { return (kBusyShare - 1) * (now_ns() - begin_ns); };
  while (spread_nodes())
    if (slice_is_over() || stopping_) return {true, idle ? 0 : wait_of_busy_ns()};
  std::deque<RelocationCandidate> queue = candidates(idle && volume_.store().is_whole(), home);
  if (queue.empty() && idle && home && volume_.store().is_whole() && !volume_.store().holds_still()) {
    const auto pause = [&] { return slice_is_over() || !engine.is_quiet(); };
    if (volume_.build_levels(pause, [&] { return stopping_.load(); })) return {true, 0};
  }
  if (queue.empty()) {
    if (home && engine.extents_away_from_home() > 0) return {false, free_home_blocks(begin_ns)};
    return {false, engine.relocation_candidates().empty() ? kNothingNs : kLookNs};
  }
  bool has_moved = false;
  const auto pace = [&](std::uint64_t bytes) -> Status {
    const bool is_first = bytes > 0 && !std::exchange(has_moved, true);  // so that each turn brings something
    const bool is_over = slice_is_over() && !is_first;
    return is_over || stopping_ || volume_.store().read_only() ? Status(Error{Errc::kBusy, "the turn is over"})
                                                               : Status{};
  };
  engine::RelocationOutcome outcome;
  do {
    if (!is_consolidation(queue.front().reason) || engine.is_quiet()) relocate(queue.front(), pace, outcome);
    queue.pop_front();
  } while (!queue.empty() && pace(0).ok());
  if (!idle) return {true, std::max(kLookNs, wait_of_busy_ns())};
  return {true, outcome.bytes > 0 ? 0 : kLookNs};  // home blocks may not be free yet
}

void Relocator::start_thread() {
  thread_ = std::thread([this] {
    for (std::int64_t wait_ns = kLookNs;; wait_ns = turn().wait_ns) {
      std::unique_lock lock(mutex_);
      if (stopped_.wait_for(lock, std::chrono::nanoseconds(wait_ns), [&] { return stopping_.load(); })) return;
    }
  });
}

void Relocator::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<engine::RelocationOutcome> Relocator::relocate_home() {
  if (volume_.store().read_only()) return Error{Errc::kReadOnly, volume_.store().read_only_reason()};
  MDFS_TRY(volume_.store().commit_freed());
  const std::lock_guard lock(working_mutex_);
  engine::RelocationOutcome all;
  for (std::uint64_t left = UINT64_MAX; volume_.engine().extents_away_from_home() < left;) {
    left = volume_.engine().extents_away_from_home();
    for (const RelocationCandidate& candidate : candidates(false, true)) relocate(candidate, {}, all);
  }
  return all;
}

volume::HomeState Relocator::home_state() const {
  return {home_extents_, home_bytes_, volume_.engine().extents_away_from_home()};
}

}  // namespace mdfs::maintenance
