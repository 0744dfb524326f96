// Relocation in the background: moves extents while the disks are idle, so that they are read in fewer runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/engine.h"
#include "maintenance/operation.h"

namespace mdfs::maintenance {

// Works on the engine's queue of candidates, each an object with a reason (engine::RelocationReason), one object after
// another. The queue is in memory only; a mount begins with an empty one. There is one idle test, Engine::is_quiet(),
// and one pacing, beside the budgets of operations (Runner):
//   idle volume   slices of 200 ms
//   otherwise     slices of 10 ms, a quarter of the time
// Strips are consolidated, and extents get parities in place of copies, only on an idle volume, and only while no disk
// is missing, because no user asked for these writes. Rewritten extents move to their home blocks, unless an operation
// is running that moves data. An object that cannot be read is left alone; its reader gets the error. The relocator
// commits only to make home blocks free. Before the queue, it spreads tree nodes that were written when the volume had
// fewer disks (Members::spread_nodes). It rewrites and commits them while no disk is missing. Behind the queue, on an
// idle volume with all disks, it builds extents of resolution levels (MaintainedVolume::build_levels). Any thread; one
// turn at a time.
class Relocator {
 public:
  // `moves_data`: true while an operation moves data. The volume must outlive the relocator.
  Relocator(MaintainedVolume& volume, std::function<bool()> moves_data)
      : volume_(volume), moves_data_(std::move(moves_data)) {}
  ~Relocator() { stop(); }

  // Starts a thread that calls turn() until stop().
  void start_thread();
  void stop();
  // Works for one slice, or returns the time to wait for the next one.
  Turn turn();

  // See volume::Operations.
  Result<engine::RelocationOutcome> relocate_home();
  volume::HomeState home_state() const;

 private:
  static constexpr std::int64_t kLookNs = 50'000'000, kNothingNs = 1'000'000'000;
  static constexpr std::int64_t kQuietSliceNs = 200'000'000, kBusySliceNs = 10'000'000;
  static constexpr std::int64_t kBusyShare = 4;             // a quarter of the time, beside other work
  static constexpr std::int64_t kCommitNs = 1'000'000'000;  // between commits of the relocator

  // All present candidates with one of these reasons, beginning behind the last object. `consolidates`: also strips to
  // be consolidated, and extents to be grouped.
  std::deque<engine::RelocationCandidate> candidates(bool consolidates, bool home) const;
  void relocate(const engine::RelocationCandidate& candidate, const engine::Pace& pace,
                engine::RelocationOutcome& outcome);
  std::int64_t free_home_blocks(std::int64_t now_ns);
  // Spreads some tree nodes; false when none is left.
  bool spread_nodes();

  MaintainedVolume& volume_;
  const std::function<bool()> moves_data_;
  std::mutex mutex_;  // for waits of the thread
  std::condition_variable stopped_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
  std::mutex working_mutex_;  // held during a turn; guards the next two
  Ino last_ = 0;
  std::int64_t committed_ns_ = 0;
  std::atomic<std::uint64_t> home_extents_{0}, home_bytes_{0};
};

}  // namespace mdfs::maintenance
