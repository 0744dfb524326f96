// How many blocks can be stored twice, each on two disks. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mdfs::store {

// Groups of `count` blocks, each on another disk, that the free blocks of `count` disks or more make. As long as the
// emptiest disk has more than its share, each group has one of its blocks, and the rest come from the others. (A group
// takes at most one block of it; and any numbers of which none is more than its share of the sum can be grouped, from
// the largest ones at a time.)
inline std::uint64_t groups_in(std::vector<std::uint64_t> free_blocks, std::size_t count) {
  std::sort(free_blocks.begin(), free_blocks.end());
  std::uint64_t sum = 0;
  for (const std::uint64_t blocks : free_blocks) sum += blocks;
  while (count > 1 && !free_blocks.empty() && free_blocks.back() > sum / count) {
    sum -= free_blocks.back();
    free_blocks.pop_back();
    --count;
  }
  return count == 0 ? 0 : sum / count;
}

// Of the free blocks of two disks or more: half of them all, or those outside of the largest disk, if these are fewer.
inline std::uint64_t pairs_in(std::span<const std::uint64_t> free_blocks) {
  return groups_in({free_blocks.begin(), free_blocks.end()}, 2);
}

// The disk that should have one block each of the next so many pairs, or fewer pairs will fit than pairs_in() says: it
// has about as many free blocks as all the others together. Null: pairs may lie anywhere.
inline std::optional<std::size_t> disk_of_next_pairs(std::span<const std::uint64_t> free_blocks, std::uint64_t pairs) {
  if (free_blocks.empty()) return std::nullopt;
  const auto largest = std::max_element(free_blocks.begin(), free_blocks.end());
  std::uint64_t others = 0;
  for (const std::uint64_t blocks : free_blocks) others += blocks;
  others -= *largest;
  // A pair elsewhere takes two blocks of the others.
  if (*largest + 2 * pairs < others) return std::nullopt;
  return static_cast<std::size_t>(largest - free_blocks.begin());
}

}  // namespace mdfs::store
