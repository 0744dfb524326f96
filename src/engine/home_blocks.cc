// Home blocks of rewritten extents.
// SPDX-License-Identifier: Apache-2.0
#include "engine/home_blocks.h"

#include <algorithm>

namespace mdfs::engine {

void HomeBlocks::note(std::uint64_t object, const std::vector<Home>& homes) {
  if (homes.empty()) return;
  const std::lock_guard lock(mutex_);
  Places& places = objects_[object];
  for (const Home& place : homes) {
    if (count_ >= kMost || places.by_order.contains(place.order) || !space_.reserve_run(place.run)) continue;
    places.by_order.emplace(place.order, place);
    places.oldest = std::min(places.oldest, place.generation);
    ++count_;
  }
  if (places.by_order.empty()) objects_.erase(object);
}

std::vector<Home> HomeBlocks::take(std::uint64_t object, std::uint64_t committed, std::size_t most) {
  std::vector<Home> taken;
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(object);
  if (found == objects_.end()) return taken;
  Places& places = found->second;
  for (std::size_t looked = 0, all = places.by_order.size(); looked < all && taken.size() < most; ++looked) {
    auto place = places.by_order.lower_bound(places.next);
    if (place == places.by_order.end()) place = places.by_order.begin();
    places.next = place->first + 1;
    if (!place->second.is_over(committed)) continue;
    taken.push_back(place->second);
    places.by_order.erase(place);
  }
  if (places.by_order.empty()) {
    objects_.erase(found);
  } else if (taken.empty()) {
    places.oldest = UINT64_MAX;
    for (const auto& [order, place] : places.by_order) places.oldest = std::min(places.oldest, place.generation);
  }
  return taken;
}

// Of two places of one extent the earlier one counts.
void HomeBlocks::put_back(std::uint64_t object, const Home& place) {
  const std::lock_guard lock(mutex_);
  Places& places = objects_[object];
  places.oldest = std::min(places.oldest, place.generation);
  const auto [known, is_new] = places.by_order.try_emplace(place.order, place);
  if (is_new) return;
  space_.release_run(known->second.run);
  known->second = place;
  --count_;
}

void HomeBlocks::release(const Home& place) {
  const std::lock_guard lock(mutex_);
  space_.release_run(place.run);
  --count_;
}

void HomeBlocks::forget(Places& places) {
  for (const auto& [order, place] : places.by_order) space_.release_run(place.run);
  count_ -= places.by_order.size();
}

void HomeBlocks::forget(std::uint64_t object) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(object);
  if (found == objects_.end()) return;
  forget(found->second);
  objects_.erase(found);
}

void HomeBlocks::forget_all() {
  const std::lock_guard lock(mutex_);
  for (auto& [object, places] : objects_) forget(places);
  objects_.clear();
}

std::vector<std::uint64_t> HomeBlocks::objects(std::uint64_t committed) const {
  std::vector<std::uint64_t> found;
  const std::lock_guard lock(mutex_);
  for (const auto& [object, places] : objects_)
    if (committed > places.oldest) found.push_back(object);
  std::sort(found.begin(), found.end());
  return found;
}

std::uint64_t HomeBlocks::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

}  // namespace mdfs::engine
