// When the changes of transactions are on the disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "base/result.h"

namespace mdfs::store {

// All methods may be called from any thread.
class Commits {
 public:
  virtual ~Commits() = default;
  virtual std::uint64_t generation() const = 0;  // of the last commit

  // Returns when everything that transact() completed before the call is on the disks. Callers share commits. A commit
  // also brings nodes back that a full volume has put among the data, as far as they have room elsewhere again; that
  // may take some commits, after the last of which generation() stays as it is. After a failed commit the store is
  // read-only and every later commit fails.
  virtual Status commit() = 0;
  // A small commit ends with one flush, and is known for good by the checksums of what it wrote. This writes down that
  // it is good, so that it stays known even if something of that is damaged later. To be called now and then, when the
  // disks have time, and before the disks are left. An error makes the store read-only; what was committed is there.
  virtual Status finalize() { return {}; }
  // Waits until a commit is not finalized and no other has been made or begun for `idle`: true, the caller finalizes.
  // False once stop_waiting() has been called, and of a store whose commits are final at once. One thread.
  virtual bool wait_for_unfinalized(std::chrono::nanoseconds /*idle*/) { return false; }
  virtual void stop_waiting() {}
  // Something would be written by a commit: changes, or copies of nodes that were found bad when they were read.
  virtual bool dirty() const = 0;
  // A disk is absent that has the newest commit, and nothing has been committed since: the first commit makes it stale.
  // So nothing is to be written but what somebody asks for; the store itself repairs nothing.
  virtual bool holds_still() const { return false; }
  // Since open().
  virtual bool has_committed() const { return true; }
  // Commits until all blocks that were freed before the call may be allocated again.
  virtual Status commit_freed() = 0;
};

}  // namespace mdfs::store
