// Relocation without being asked: what moves while the disks have time, so that it is read in fewer runs.
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

// Works off the engine's queue of candidates, each an object with a reason (engine::RelocationReason), object after
// object. The queue is in memory alone: a mount begins with none. There is one idle test, Engine::is_quiet(), and one
// pacing:
//
//   nobody reads or writes   slices of 200 ms
//   otherwise                slices of 10 ms, a quarter of the time
//
// Strips are consolidated only while nobody reads or writes, and only while no disk is missing: then nothing is written
// that nobody asked for. Rewritten extents move back to their home blocks, unless an operation runs that moves data. An
// object that cannot be read is left alone: its reader gets the error. Nothing is committed, except that home blocks
// become free by commits.
//
// Before the queue come tree nodes that were written when the volume had fewer disks (Members::spread_nodes): they are
// written anew, and committed, while no disk is missing. Any thread; one turn at a time.
class Relocator {
 public:
  // `moves_data`: does an operation move data now? The volume outlives this.
  Relocator(MaintainedVolume& volume, std::function<bool()> moves_data)
      : volume_(volume), moves_data_(std::move(moves_data)) {}
  ~Relocator() { stop(); }

  // From now on a thread calls turn(), until stop().
  void start_thread();
  void stop();
  // One slice, or the time to wait for the next one.
  Turn turn();

  // volume::Operations::relocate_home(), home_state().
  Result<engine::RelocationOutcome> relocate_home();
  volume::HomeState home_state() const;

 private:
  static constexpr std::int64_t kLookNs = 50'000'000, kNothingNs = 1'000'000'000;
  static constexpr std::int64_t kQuietSliceNs = 200'000'000, kBusySliceNs = 10'000'000;
  static constexpr std::int64_t kBusyShare = 4;             // of the time, beside others
  static constexpr std::int64_t kCommitNs = 1'000'000'000;  // between commits for this alone

  // All candidates of now with one of these reasons, from the one behind the object that was last on.
  std::deque<engine::RelocationCandidate> candidates(bool strips, bool home) const;
  void relocate(const engine::RelocationCandidate& candidate, const engine::Pace& pace,
                engine::RelocationOutcome& outcome);
  std::int64_t free_home_blocks(std::int64_t now_ns);
  // Some tree nodes get their copies on all disks that new ones have copies on; false when none is left.
  bool spread_nodes();

  MaintainedVolume& volume_;
  const std::function<bool()> moves_data_;
  std::mutex mutex_;  // for the thread to wait with
  std::condition_variable stopped_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
  std::mutex working_mutex_;  // held during a turn; guards the next two
  Ino last_ = 0;
  std::int64_t committed_ns_ = 0;
  std::atomic<std::uint64_t> home_extents_{0}, home_bytes_{0};
};

}  // namespace mdfs::maintenance
