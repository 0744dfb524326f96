// A list by age, and an index of it.
// SPDX-License-Identifier: Apache-2.0
#include "sim/extent_cache.h"

#include <functional>

namespace mdfs::sim {

std::size_t ExtentCache::Hash::operator()(const Key& key) const {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  const std::uint64_t mixed = (key.extent * kOdd ^ key.base) * kOdd;
  return std::hash<const void*>{}(key.image) ^ static_cast<std::size_t>(mixed ^ mixed >> 32);
}

LoadId ExtentCache::find(const Key& key, std::size_t unit) {
  const auto known = by_key_.find(key);
  if (known == by_key_.end()) return 0;
  entries_.splice(entries_.begin(), entries_, known->second);
  const std::vector<LoadId>& loads = known->second->loads;
  return unit < loads.size() ? loads[unit] : 0;
}

void ExtentCache::put(const Key& key, std::size_t unit, std::uint64_t bytes, LoadId load) {
  if (!enabled()) return;
  auto known = by_key_.find(key);
  if (known == by_key_.end()) {
    entries_.push_front({.key = key, .loads = {}, .bytes = 0});
    known = by_key_.emplace(key, entries_.begin()).first;
  }
  Entry& entry = *known->second;
  entries_.splice(entries_.begin(), entries_, known->second);
  if (entry.loads.size() <= unit) entry.loads.resize(unit + 1);
  if (entry.loads[unit] == 0) {
    entry.bytes += bytes;
    used_bytes_ += bytes;
  }
  entry.loads[unit] = load;
  while (used_bytes_ > budget_bytes_) {
    used_bytes_ -= entries_.back().bytes;
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

}  // namespace mdfs::sim
