// The last failed write of each inode that the kernel knows.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/failed_writes.h"

namespace mdfs::fuse {

void FailedWrites::note(volume::Ino ino, Errc code) {
  const std::lock_guard lock(mutex_);
  failures_[ino] = {last_.fetch_add(1, std::memory_order_acq_rel) + 1, code};
}

void FailedWrites::forget(volume::Ino ino) {
  if (last() == 0) return;
  const std::lock_guard lock(mutex_);
  failures_.erase(ino);
}

std::optional<Errc> FailedWrites::take(volume::Ino ino, std::atomic<std::uint64_t>& seen) {
  if (last() == seen.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto found = failures_.find(ino);
  if (found == failures_.end() || found->second.number <= seen.load(std::memory_order_acquire)) return std::nullopt;
  seen.store(found->second.number, std::memory_order_release);
  return found->second.code;
}

}  // namespace mdfs::fuse
