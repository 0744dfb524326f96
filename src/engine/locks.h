// The waiting places of an object: the gate of loads and the lock on parts of the grid.
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
class Gate {
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

class InsideGate {
 public:
  explicit InsideGate(Gate& gate) : gate_(gate) { gate_.enter(); }
  InsideGate(const InsideGate&) = delete;
  InsideGate& operator=(const InsideGate&) = delete;
  ~InsideGate() { gate_.leave(); }

 private:
  Gate& gate_;
};

class ClosedGate {
 public:
  explicit ClosedGate(Gate& gate) : gate_(gate) { gate_.close(); }
  ClosedGate(const ClosedGate&) = delete;
  ClosedGate& operator=(const ClosedGate&) = delete;
  ~ClosedGate() { gate_.open(); }

 private:
  Gate& gate_;
};

// A half-open box of extents.
struct GridBox {
  geometry::Coord first{};
  geometry::Coord last{};

  bool contains(unsigned rank, const geometry::Coord& extent) const;
};

struct GridLockEntry;

// Who may change which part of the grid. Writers share it among each other; a window write, a truncation or a punch
// has its part alone. First come, first served, so that nobody starves; each holder takes one box only, so that
// nobody waits in a circle.
class GridLock {
 public:
  enum class Mode : std::uint8_t { kShared, kExclusive };

  class Hold {
   public:
    Hold(GridLock& lock, unsigned rank, const GridBox& box, Mode mode) : lock_(lock) {
      entry_ = lock_.acquire(rank, box, mode);
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() { lock_.release(entry_); }

   private:
    GridLock& lock_;
    std::list<GridLockEntry>::iterator entry_;
  };

 private:
  using Entries = std::list<GridLockEntry>;
  Entries::iterator acquire(unsigned rank, const GridBox& box, Mode mode);
  void release(Entries::iterator entry);

  std::mutex mutex_;  // guards entries_
  std::condition_variable released_;
  Entries entries_;  // in order of arrival
};

struct GridLockEntry {
  GridBox box;
  GridLock::Mode mode;
};

}  // namespace mdfs::engine
