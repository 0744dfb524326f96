// Blocks that may be allocated again, and that one of the last commits had in use.
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

// No run crosses a bitmap page. Runs may overlap: blocks that were freed, used and freed again. Not thread-safe.
class RecentlyFreed {
 public:
  static constexpr std::size_t kLimit = 1u << 18;  // runs: some 20 MiB

  // Adds runs that the commit of this generation freed; generations do not decrease. False: there would be too many,
  // and none of them is added.
  bool add(std::uint64_t generation, std::span<const alloc::Run> runs);
  // Forgets the runs freed up to this generation, and calls `forgotten` for each. Parts of them may have been freed
  // again later.
  void forget(std::uint64_t generation, const std::function<void(const alloc::Run&)>& forgotten);
  // Forgets the runs of the disk that begin at or behind this block. No run may lie across it.
  void forget_behind(std::uint16_t disk, std::uint64_t block);
  void forget_disk(std::uint16_t disk) { forget_behind(disk, 0); }
  bool empty() const { return order_.empty(); }
  // The recently freed parts of a range inside one bitmap page.
  alloc::AvoidedRanges within(std::uint16_t disk, alloc::BlockRange range) const;

 private:
  using Place = std::pair<std::uint16_t, std::uint64_t>;  // disk, first block
  struct Freed {
    std::uint64_t generation = 0;
    alloc::Run run;
  };
  std::deque<Freed> order_;                   // in the order of freeing
  std::multimap<Place, std::uint32_t> runs_;  // the same, with lengths in blocks
};

}  // namespace mdfs::store
