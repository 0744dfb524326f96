// Tells disks about free blocks (discard, trim).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace mdfs::store {

// The progress over the free blocks of a disk.
struct DiscardPosition {
  std::uint64_t next = 0;      // block
  std::uint64_t hole_end = 0;  // block: `next` lies in a long enough hole up to here
};

// A trim of one disk, some runs at a time. kRefused: the disk does not take discards. kNotThere: no healthy disk.
struct DiskTrim {
  enum class State : std::uint8_t { kMore, kDone, kRefused, kFailed, kNotThere };
  State state = State::kMore;
  DiscardPosition position;
  std::uint64_t end = UINT64_MAX;      // block: the end of the trim
  std::uint64_t discarded_blocks = 0;  // so far
  std::string why;                     // kFailed
};

// The store discards blocks that neither the last four commits nor the next one need, and that are not reserved. All
// methods may be called from any thread. Errors: kReadOnly: the store cannot be written. kBusy: Commits::holds_still().
// kNotSupported: a store without disks.
class Discards {
 public:
  virtual ~Discards() = default;
  // Commits until all blocks that were freed before the call may be discarded.
  virtual Status commit_discardable();
  // Discards one more free run of each disk that is not done (one entry each, by index), all at once. Takes runs of
  // holes of at least so many blocks. Allocations of these blocks wait for the disks.
  virtual Status trim_some(std::vector<DiskTrim>& disks, std::uint64_t smallest_blocks);
  // Remembers larger runs as they are freed, for discard_freed(). The number of remembered runs is bounded; further
  // runs are left to trim_some().
  virtual void set_discard(bool /*wanted*/) {}
  // Waits for such runs and discards them. False after stop_waiting(). One thread.
  virtual bool discard_freed() { return false; }
};

}  // namespace mdfs::store
