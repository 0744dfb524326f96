// The queue of objects for relocation in the background.
// SPDX-License-Identifier: Apache-2.0
#include "engine/relocation_queue.h"

#include <algorithm>
#include <utility>

namespace mdfs::engine {

std::vector<RelocationCandidate> RelocationQueue::candidates(std::uint64_t committed) const {
  std::vector<RelocationCandidate> all;
  for (const std::uint64_t object : homes_.objects(committed)) all.push_back({object, RelocationReason::kAwayFromHome});
  {
    const std::lock_guard lock(mutex_);
    for (const std::uint64_t object : with_strips_) all.push_back({object, RelocationReason::kInStrips});
  }
  std::ranges::sort(all, {}, [](const RelocationCandidate& one) { return std::pair(one.object, one.reason); });
  return all;
}

void RelocationQueue::forget(const RelocationCandidate& candidate) {
  if (candidate.reason == RelocationReason::kAwayFromHome) return homes_.forget(candidate.object);
  const std::lock_guard lock(mutex_);
  with_strips_.erase(candidate.object);
}

void RelocationQueue::forget(std::uint64_t object) {
  forget({object, RelocationReason::kInStrips});
  forget({object, RelocationReason::kAwayFromHome});
}

}  // namespace mdfs::engine
