// The places that rewritten extents have left.
// SPDX-License-Identifier: Apache-2.0
#include "engine/left_places.h"

#include <algorithm>

namespace mdfs::engine {

void LeftPlaces::note(std::uint64_t object, const std::vector<LeftPlace>& left) {
  if (left.empty()) return;
  const std::lock_guard lock(mutex_);
  Units& units = objects_[object];
  for (const LeftPlace& place : left) {
    if (count_ >= kMost || units.contains(place.unit) || !store_.keep(place.run)) continue;
    units.emplace(place.unit, place);
    ++count_;
  }
  if (units.empty()) objects_.erase(object);
}

std::vector<LeftPlace> LeftPlaces::take(std::uint64_t object, std::uint64_t committed) {
  std::vector<LeftPlace> taken;
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(object);
  if (found == objects_.end()) return taken;
  for (const auto& [unit, place] : found->second)
    if (place.is_over(committed)) taken.push_back(place);
  for (const LeftPlace& place : taken) found->second.erase(place.unit);
  count_ -= taken.size();
  if (found->second.empty()) objects_.erase(found);
  return taken;
}

// Of two places of one extent the earlier one counts.
void LeftPlaces::put_back(std::uint64_t object, const LeftPlace& place) {
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = objects_[object].try_emplace(place.unit, place);
  if (is_new) {
    ++count_;
  } else {
    store_.let_go(known->second.run);
    known->second = place;
  }
}

void LeftPlaces::forget(std::uint64_t object) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(object);
  if (found == objects_.end()) return;
  for (const auto& [unit, place] : found->second) store_.let_go(place.run);
  count_ -= found->second.size();
  objects_.erase(found);
}

std::vector<std::uint64_t> LeftPlaces::objects(std::uint64_t committed) const {
  std::vector<std::uint64_t> found;
  const std::lock_guard lock(mutex_);
  for (const auto& [object, units] : objects_)
    if (std::any_of(units.begin(), units.end(), [&](const auto& unit) { return unit.second.is_over(committed); }))
      found.push_back(object);
  std::sort(found.begin(), found.end());
  return found;
}

std::uint64_t LeftPlaces::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

}  // namespace mdfs::engine
