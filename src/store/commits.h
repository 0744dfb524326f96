// Commits: make the changes of transactions durable.
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

  // Returns when all transactions that completed before the call are on the disks. Callers share commits. A commit also
  // moves nodes that a full volume has put among the data back, as far as there is space for them. That may take
  // several commits; after the last of them generation() stays the same. After a failed commit the store is read-only,
  // and every later commit fails.
  virtual Status commit() = 0;
  // Threads inside commit() that wait for the commit in progress to end. For tests and statistics.
  virtual unsigned waiting_for_commit() const { return 0; }
  // A small commit ends with one flush, and validates itself by checksum records. finalize() writes its committed
  // slots. The commit then stays valid even if a block of it is damaged later. To be called now and then, when the
  // disks are idle, and before the disks are closed. An error makes the store read-only; the commit is kept.
  virtual Status finalize() { return {}; }
  // Waits until a commit is not finalized and no other has been made or begun for `idle`. True: the caller finalizes
  // it. False after stop_waiting(), and for a store whose commits are always final. One thread.
  virtual bool wait_for_unfinalized(std::chrono::nanoseconds /*idle*/) { return false; }
  virtual void stop_waiting() {}
  // True if a commit would write something: changes, or copies of nodes that were found bad when they were read.
  virtual bool dirty() const = 0;
  // True while a disk is absent that has the newest commit, and no commit has followed: the first commit makes that
  // disk stale. The store then repairs nothing by itself, and writes only when a caller asks for it.
  virtual bool holds_still() const { return false; }
  // Since open().
  virtual bool has_committed() const { return true; }
  // Commits until all blocks that were freed before the call may be allocated again.
  virtual Status commit_freed() = 0;
};

}  // namespace mdfs::store
