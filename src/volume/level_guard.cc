// Writers and watches of an image.
// SPDX-License-Identifier: Apache-2.0
#include "volume/level_guard.h"

#include <algorithm>
#include <chrono>

namespace mdfs::volume {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{20};  // at a waiting thread's stop

// Boxes have only the axes of their rank. The shorter one stands for all places along the others.
bool overlap(unsigned rank, const geometry::SampleBox& box, unsigned other_rank, const geometry::SampleBox& other) {
  return geometry::overlap(std::min(rank, other_rank), box, other);
}

}  // namespace

LevelGuard::Write::Write(LevelGuard& guard, unsigned rank, const geometry::SampleBox& box) : guard_(guard) {
  std::unique_lock lock(guard_.mutex_);
  entry_ = guard_.writers_.insert(guard_.writers_.end(), {box, rank});
  const auto is_above = [&](const Watched& watched) { return overlap(watched.rank, watched.box, rank, box); };
  for (Watched& watched : guard_.watches_) watched.stale = watched.stale || is_above(watched);
  guard_.changed_.wait(lock, [&] {
    return std::none_of(guard_.watches_.begin(), guard_.watches_.end(),
                        [&](const Watched& watched) { return watched.storing && is_above(watched); });
  });
}

LevelGuard::Write::~Write() {
  const std::lock_guard lock(guard_.mutex_);
  guard_.writers_.erase(entry_);
  guard_.changed_.notify_all();
}

LevelGuard::Watch::Watch(LevelGuard& guard, unsigned rank, const geometry::SampleBox& box, const engine::Stop& stop)
    : guard_(guard) {
  std::unique_lock lock(guard_.mutex_);
  const auto is_written = [&] {
    return std::any_of(guard_.writers_.begin(), guard_.writers_.end(),
                       [&](const Writing& writing) { return overlap(writing.rank, writing.box, rank, box); });
  };
  bool stopped = false;
  while (is_written() && !stopped) {
    guard_.changed_.wait_for(lock, kBetweenLooks);
    stopped = stop && stop();
  }
  entry_ = guard_.watches_.insert(guard_.watches_.end(), {box, rank, stopped, false});
}

LevelGuard::Watch::~Watch() {
  const std::lock_guard lock(guard_.mutex_);
  guard_.watches_.erase(entry_);
}

bool LevelGuard::Watch::is_stale() const {
  const std::lock_guard lock(guard_.mutex_);
  return entry_->stale;
}

LevelGuard::Store::Store(Watch& watch) : watch_(watch) {
  const std::lock_guard lock(watch_.guard_.mutex_);
  storing_ = watch_.entry_->storing = !watch_.entry_->stale;
}

LevelGuard::Store::~Store() {
  if (!storing_) return;
  const std::lock_guard lock(watch_.guard_.mutex_);
  watch_.entry_->storing = false;
  watch_.guard_.changed_.notify_all();
}

}  // namespace mdfs::volume
