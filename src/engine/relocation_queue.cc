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
    for (const auto& [object, extent] : damaged_)
      if (all.empty() || all.back().object != object || all.back().reason != RelocationReason::kDamaged)
        all.push_back({object, RelocationReason::kDamaged});
  }
  std::ranges::sort(all, {}, [](const RelocationCandidate& one) { return std::pair(one.object, one.reason); });
  return all;
}

void RelocationQueue::forget(const RelocationCandidate& candidate) {
  if (candidate.reason == RelocationReason::kAwayFromHome) return homes_.forget(candidate.object);
  if (candidate.reason == RelocationReason::kDamaged) return static_cast<void>(take_damaged(candidate.object));
  const std::lock_guard lock(mutex_);
  with_strips_.erase(candidate.object);
}

std::vector<std::uint64_t> RelocationQueue::take_damaged(std::uint64_t object) {
  const std::lock_guard lock(mutex_);
  const auto first = damaged_.lower_bound({object, 0}), last = damaged_.upper_bound({object, UINT64_MAX});
  std::vector<std::uint64_t> extents;
  for (auto one = first; one != last; ++one) extents.push_back(one->second);
  damaged_.erase(first, last);
  return extents;
}

void RelocationQueue::forget(std::uint64_t object) {
  forget({object, RelocationReason::kInStrips});
  forget({object, RelocationReason::kAwayFromHome});
  forget({object, RelocationReason::kDamaged});
}

}  // namespace mdfs::engine
