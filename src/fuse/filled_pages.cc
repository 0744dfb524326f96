// Which inodes the kernel may hold pages of.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/filled_pages.h"

namespace mdfs::fuse {

void FilledPages::note_fill(volume::Ino ino, bool first) {
  const std::lock_guard lock(mutex_);
  State& state = states_[ino];
  state.filled = true;
  if (first) ++state.descriptions;
}

void FilledPages::note_closed(volume::Ino ino) {
  const std::lock_guard lock(mutex_);
  const auto found = states_.find(ino);
  if (found == states_.end()) return;
  if (found->second.descriptions > 0) --found->second.descriptions;
  if (found->second.is_idle()) states_.erase(found);
}

void FilledPages::forget(volume::Ino ino) {
  const std::lock_guard lock(mutex_);
  const auto found = states_.find(ino);
  if (found == states_.end()) return;
  found->second.filled = false;
  if (found->second.is_idle()) states_.erase(found);
}

FilledPages::Drop FilledPages::begin_drop(volume::Ino ino) {
  const std::lock_guard lock(mutex_);
  const auto found = states_.find(ino);
  if (found == states_.end()) return Drop::kNothing;
  State& state = found->second;
  ++state.dropping;
  if (state.descriptions > 0) return Drop::kRange;
  state.filled = false;
  return Drop::kAll;
}

void FilledPages::dropped(volume::Ino ino) {
  const std::lock_guard lock(mutex_);
  const auto found = states_.find(ino);
  if (found == states_.end()) return;
  --found->second.dropping;
  if (found->second.is_idle()) states_.erase(found);
}

}  // namespace mdfs::fuse
