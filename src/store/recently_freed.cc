// Recently freed blocks.
// SPDX-License-Identifier: Apache-2.0
#include "store/recently_freed.h"

#include <algorithm>

#include "mdfs/ondisk.h"

namespace mdfs::store {

bool RecentlyFreed::add(std::uint64_t generation, std::span<const alloc::Run> runs) {
  if (runs.empty()) return true;
  if (runs_.size() + runs.size() > kLimit) return false;
  for (const alloc::Run& run : runs) {
    order_.push_back({generation, run});
    runs_.insert({{run.disk, run.block}, run.blocks});
  }
  return true;
}

void RecentlyFreed::forget(std::uint64_t generation, const std::function<void(const alloc::Run&)>& forgotten) {
  for (; !order_.empty() && order_.front().generation <= generation; order_.pop_front()) {
    const alloc::Run& run = order_.front().run;
    const auto [first, last] = runs_.equal_range({run.disk, run.block});
    runs_.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == run.blocks; }));
    forgotten(run);
  }
}

void RecentlyFreed::forget_behind(std::uint16_t disk, std::uint64_t block) {
  std::erase_if(runs_, [&](const auto& entry) { return entry.first.first == disk && entry.first.second >= block; });
  std::erase_if(order_, [&](const Freed& freed) { return freed.run.disk == disk && freed.run.block >= block; });
}

alloc::AvoidedRanges RecentlyFreed::within(std::uint16_t disk, alloc::BlockRange range) const {
  alloc::AvoidedRanges ranges;
  const std::uint64_t page = range.begin / MDFS_BITS_PER_PAGE * MDFS_BITS_PER_PAGE;
  for (auto entry = runs_.lower_bound({disk, page}); entry != runs_.end(); ++entry) {
    const auto& [place, blocks] = *entry;
    if (place.first != disk || place.second >= range.end) break;
    const std::uint64_t end = place.second + blocks;
    if (end <= range.begin) continue;
    if (!ranges.empty() && std::prev(ranges.end())->second >= place.second) {
      std::uint64_t& before = std::prev(ranges.end())->second;
      before = std::max(before, end);
    } else {
      ranges[place.second] = end;
    }
  }
  return ranges;
}

}  // namespace mdfs::store
