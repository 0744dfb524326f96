// The locks of an open object: the barrier of loads and the range lock of the grid.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>

#include "geometry/geometry.h"

namespace mdfs::engine {

// Many may pass, or one may close it. Who closes waits for those inside; meanwhile no new ones get in. Those inside
// may wait for disks; a cache hit does not pass here.
class Barrier {
 public:
  void enter();
  void enter_again();  // of who is inside already: does not wait
  void leave();
  void close();
  void open();

 private:
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  unsigned inside_ = 0;
  unsigned closing_ = 0;  // wanting to close, or closed
  bool closed_ = false;
};

class InsideBarrier {
 public:
  explicit InsideBarrier(Barrier& barrier) : barrier_(barrier) { barrier_.enter(); }
  InsideBarrier(const InsideBarrier&) = delete;
  InsideBarrier& operator=(const InsideBarrier&) = delete;
  ~InsideBarrier() { barrier_.leave(); }

 private:
  Barrier& barrier_;
};

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

// Who may change which part of the grid. Writers share it among each other; a window write, a truncation or a punch
// has its part alone. First come, first served, so that nobody starves; each holder takes one box only, so that
// nobody waits in a circle.
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
