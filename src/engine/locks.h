// The locks of an open object: the barrier of loads and the range lock of the grid.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>

#include "geometry/geometry.h"

namespace mdfs::engine {

// Many threads may be inside, or one may close the barrier. The closing thread waits until all have left, while no new
// ones enter. Threads inside may wait for disks. A cache hit does not pass the barrier.
class Barrier {
 public:
  bool enter(const std::function<bool()>& stop = {});  // false: `stop`, asked from time to time, ended the wait
  void enter_again();                                  // for a thread that is inside already: does not wait
  void leave();
  void close();
  void open();

 private:
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  unsigned inside_ = 0;
  unsigned closing_ = 0;  // threads that wait to close, or have closed
  bool closed_ = false;
};

// Is inside the barrier from the constructor to the destructor.
class InsideBarrier {
 public:
  explicit InsideBarrier(Barrier& barrier, const std::function<bool()>& stop = {})
      : barrier_(barrier), is_inside_(barrier.enter(stop)) {}
  InsideBarrier(const InsideBarrier&) = delete;
  InsideBarrier& operator=(const InsideBarrier&) = delete;
  ~InsideBarrier() {
    if (is_inside_) barrier_.leave();
  }
  explicit operator bool() const { return is_inside_; }  // false: `stop` ended the wait

 private:
  Barrier& barrier_;
  const bool is_inside_;
};

// Keeps the barrier closed from the constructor to the destructor.
class ClosedBarrier {
 public:
  explicit ClosedBarrier(Barrier& barrier) : barrier_(barrier) { barrier_.close(); }
  ClosedBarrier(const ClosedBarrier&) = delete;
  ClosedBarrier& operator=(const ClosedBarrier&) = delete;
  ~ClosedBarrier() { barrier_.open(); }

 private:
  Barrier& barrier_;
};

// A half-open box of extents.
struct GridBox {
  geometry::Coord first{};
  geometry::Coord last{};

  bool contains(unsigned rank, const geometry::Coord& extent) const;
};

struct RangeLockEntry;

// Locks parts of the grid. Writers share a part; a window write, a truncation or a punch has its part alone. Requests
// are served in order of arrival, so no thread starves. Each holder takes one box, so no threads wait for each other in
// a circle.
class RangeLock {
 public:
  enum class Mode : std::uint8_t { kShared, kExclusive };

  class Hold {
   public:
    Hold(RangeLock& lock, unsigned rank, const GridBox& box, Mode mode) : lock_(lock) {
      entry_ = lock_.acquire(rank, box, mode);
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() { lock_.release(entry_); }

   private:
    RangeLock& lock_;
    std::list<RangeLockEntry>::iterator entry_;
  };

 private:
  using Entries = std::list<RangeLockEntry>;
  Entries::iterator acquire(unsigned rank, const GridBox& box, Mode mode);
  void release(Entries::iterator entry);

  std::mutex mutex_;  // guards entries_
  std::condition_variable released_;
  Entries entries_;  // in order of arrival
};

struct RangeLockEntry {
  GridBox box;
  RangeLock::Mode mode;
};

}  // namespace mdfs::engine
