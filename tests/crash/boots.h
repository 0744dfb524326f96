// Second sessions on the disks that a first one has left: mounted after a kill, or while a disk is late, and cut again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "judge.h"

namespace mdfs::crash {

// How a second session finds the disks.
struct Boot {
  test::MemoryDisks seen;               // what it reads
  test::MemoryDisks durable;            // what a power cut leaves at least
  std::vector<device::Event> in_cache;  // what is in `seen` and not durable
  int absent = -1;                      // the disk that is late: not there now, and there the next time
  std::string text;                     // for messages
};

// Mounts, writes and syncs a file if the volume may be written, and unmounts; then cuts the power everywhere in that,
// mounts all disks and judges what is there. Counts what is lost in `lost`; the first loss in words, or "".
std::string judge_second_session(Boot boot, const History& history, const Progress& progress, const RunOptions& options,
                                 Judged& judged, std::uint64_t& lost);

}  // namespace mdfs::crash
