// Later sessions on the disks that an earlier one has left: mounted after a kill, or while a disk is late, and cut
// again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "judge.h"

namespace mdfs::crash {

// How a session finds the disks.
struct Boot {
  test::MemoryDisks seen;               // what it reads
  test::MemoryDisks durable;            // what a power cut leaves at least
  std::vector<device::Event> in_cache;  // what is in `seen` and not durable
  int absent = -1;                      // the disk that is late: not there now, and there the next time
  std::string text;                     // for messages
  std::vector<Kept> kept = {};          // files of the sessions between the first and this one
};

// Judges what comes after the first session of one sequence.
class LaterSessions {
 public:
  LaterSessions(const History& history, const RunOptions& options, Judged& judged)
      : history_(history), options_(options), judged_(judged) {}

  // Mounts, writes and syncs a file if the volume may be written, and unmounts; then cuts the power everywhere in that,
  // mounts all disks and judges what is there. At every so-many-th call, by the options, the daemon is killed there as
  // well, at a few points, and a third session is mounted and cut. Describes the first loss, or "".
  std::string judge(Boot boot, const Progress& progress);
  std::uint64_t lost() const { return lost_; }  // states

 private:
  std::string judge_cuts(const Boot& boot, const std::vector<device::Event>& events, const Progress& progress,
                         std::size_t begin);
  std::string judge_kills(const Boot& boot, const std::vector<device::Event>& events, const Progress& progress,
                          std::size_t begin);

  const History& history_;
  const RunOptions& options_;
  Judged& judged_;
  std::uint64_t lost_ = 0;
  std::uint64_t sessions_ = 0;  // second ones
};

}  // namespace mdfs::crash
