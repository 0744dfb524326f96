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
    for (const auto& [object, page] : ungrouped_)
      if (!ungrouped_from_.contains(object) &&
          (all.empty() || all.back().object != object || all.back().reason != RelocationReason::kUngrouped))
        all.push_back({object, RelocationReason::kUngrouped});
    for (const auto& [object, page] : ungrouped_from_) all.push_back({object, RelocationReason::kUngrouped});
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
  if (candidate.reason == RelocationReason::kUngrouped) ungrouped_from_.erase(candidate.object);
  if (candidate.reason == RelocationReason::kUngrouped)
    ungrouped_.erase(ungrouped_.lower_bound({candidate.object, 0}),
                     ungrouped_.upper_bound({candidate.object, UINT64_MAX}));
  else
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

void RelocationQueue::note_opened(std::uint64_t object) {
  {
    const std::lock_guard lock(mutex_);
    if (looked_through_.contains(object)) return;
  }
  note_ungrouped_from(object, 0);
}

void RelocationQueue::note_looked_through(std::uint64_t object) {
  const std::lock_guard lock(mutex_);
  if (looked_through_.size() >= kMostLookedThrough) looked_through_.clear();
  looked_through_.insert(object);
}

std::optional<UngroupedPage> RelocationQueue::take_ungrouped(std::uint64_t object) {
  const std::lock_guard lock(mutex_);
  if (const auto first = ungrouped_.lower_bound({object, 0}); first != ungrouped_.end() && first->first == object) {
    const std::uint64_t page = first->second;
    ungrouped_.erase(first);
    return UngroupedPage{page, false};
  }
  const auto from = ungrouped_from_.find(object);
  if (from == ungrouped_from_.end()) return std::nullopt;
  const std::uint64_t page = from->second;
  ungrouped_from_.erase(from);
  return UngroupedPage{page, true};
}

void RelocationQueue::forget(std::uint64_t object) {
  forget({object, RelocationReason::kInStrips});
  forget({object, RelocationReason::kAwayFromHome});
  forget({object, RelocationReason::kUngrouped});
  forget({object, RelocationReason::kDamaged});
}

}  // namespace mdfs::engine
