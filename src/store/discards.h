// Telling the disks of blocks that are free.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace mdfs::store {

// How far a disk has been told of its free blocks.
struct DiscardPosition {
  std::uint64_t next = 0;      // block
  std::uint64_t hole_end = 0;  // block: so far `next` lies in a hole that is long enough
};

// Telling a disk of its free blocks, some at a time. kRefused: it cannot be told; kNotThere: there is no healthy disk.
struct DiskTrim {
  enum class State : std::uint8_t { kMore, kDone, kRefused, kFailed, kNotThere };
  State state = State::kMore;
  DiscardPosition position;
  std::uint64_t end = UINT64_MAX;      // block: here it is done
  std::uint64_t discarded_blocks = 0;  // so far
  std::string why;                     // kFailed
};

// Blocks may be discarded that no commit needs, neither one of the last four nor the next one, and that nobody has
// reserved. All methods may be called from any thread. Errors: kReadOnly: the store cannot be written. kBusy:
// Commits::holds_still(). kNotSupported: a store without disks.
class Discards {
 public:
  virtual ~Discards() = default;
  // Commits until all that has been freed before the call may be discarded.
  virtual Status commit_discardable();
  // Tells each disk that is not done (one entry each, by index) of one more free run, all at once. Runs of holes of at
  // least so many blocks. Those who need the blocks meanwhile wait for the disks.
  virtual Status trim_some(std::vector<DiskTrim>& disks, std::uint64_t smallest_blocks);
  // From now on disks are told of larger runs that have been freed, by discard_freed(). A bounded number of runs is
  // remembered; what is beyond it is left for trim_some().
  virtual void set_discard(bool /*wanted*/) {}
  // Waits for such runs and tells the disks of them. False once stop_waiting() has been called. One thread.
  virtual bool discard_freed() { return false; }
};

}  // namespace mdfs::store
