// The locks of an open object.
// SPDX-License-Identifier: Apache-2.0
#include "engine/locks.h"

#include <algorithm>

#include "base/stop.h"

namespace mdfs::engine {

bool Barrier::enter(const std::function<bool()>& stop) {
  std::unique_lock lock(mutex_);
  if (!wait_or_stop(changed_, lock, kStopPoll, stop, [this] { return closing_ == 0; })) return false;
  ++inside_;
  return true;
}

void Barrier::enter_again() {
  const std::lock_guard lock(mutex_);
  ++inside_;
}

void Barrier::leave() {
  const std::lock_guard lock(mutex_);
  if (--inside_ == 0 && closing_ > 0) changed_.notify_all();
}

void Barrier::close() {
  std::unique_lock lock(mutex_);
  ++closing_;
  changed_.wait(lock, [this] { return inside_ == 0 && !closed_; });
  closed_ = true;
}

void Barrier::open() {
  const std::lock_guard lock(mutex_);
  --closing_;
  closed_ = false;
  changed_.notify_all();
}

bool GridBox::contains(unsigned rank, const geometry::Coord& extent) const {
  for (unsigned axis = 0; axis < rank; ++axis)
    if (extent[axis] < first[axis] || extent[axis] >= last[axis]) return false;
  return true;
}

namespace {

bool overlap(unsigned rank, const GridBox& a, const GridBox& b) {
  for (unsigned axis = 0; axis < rank; ++axis)
    if (a.last[axis] <= b.first[axis] || b.last[axis] <= a.first[axis]) return false;
  return true;
}

}  // namespace

RangeLock::Entries::iterator RangeLock::acquire(unsigned rank, const GridBox& box, Mode mode) {
  std::unique_lock lock(mutex_);
  entries_.push_back({box, mode});
  const auto mine = std::prev(entries_.end());
  released_.wait(lock, [&] {
    return std::none_of(entries_.begin(), mine, [&](const RangeLockEntry& earlier) {
      const bool alone = mode == Mode::kExclusive || earlier.mode == Mode::kExclusive;
      return alone && overlap(rank, box, earlier.box);
    });
  });
  return mine;
}

void RangeLock::release(Entries::iterator entry) {
  const std::lock_guard lock(mutex_);
  entries_.erase(entry);
  released_.notify_all();
}

}  // namespace mdfs::engine
