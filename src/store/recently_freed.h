// Blocks that may be used again, and that one of the last commits had in use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "alloc/run.h"
#include "alloc/space_map.h"

namespace mdfs::store {

// No run crosses a bitmap page. Runs may lie over each other: blocks that were freed, used and freed again. Not locked.
class RecentlyFreed {
 public:
  static constexpr std::size_t kLimit = 1u << 18;  // runs: some 20 MiB

  // Freed by the commit of this generation; generations do not go down. False: they would be too many, and none of them
  // is remembered.
  bool add(std::uint64_t generation, std::span<const alloc::Run> runs);
  // Forgets what was freed up to this generation, run by run. Some of it may have been freed again later.
  void forget(std::uint64_t generation, const std::function<void(const alloc::Run&)>& forgotten);
  // All of the disk from this block on, where runs begin or end if one lies there.
  void forget_behind(std::uint16_t disk, std::uint64_t block);
  void forget_disk(std::uint16_t disk) { forget_behind(disk, 0); }
  bool empty() const { return order_.empty(); }
  // What of a range inside one bitmap page was freed recently.
  alloc::AvoidedRanges within(std::uint16_t disk, alloc::BlockRange range) const;

 private:
  using Place = std::pair<std::uint16_t, std::uint64_t>;  // disk, first block
  struct Freed {
    std::uint64_t generation = 0;
    alloc::Run run;
  };
  std::deque<Freed> order_;                   // in which they were freed
  std::multimap<Place, std::uint32_t> runs_;  // the same: how long
};

}  // namespace mdfs::store
