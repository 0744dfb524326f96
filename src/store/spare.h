// Room that stays free for the rebuild of lost disks. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "store/pairs.h"

namespace mdfs::store {

// Of each disk a rebuild cannot use the last blocks: a piece needs room on another disk than the one that has the other
// piece, and the last room may be on that one alone; and the tree needs nodes on two disks. A 32nd of the disk, 1 MiB
// at least (of small disks an eighth), and 64 MiB at most.
inline std::uint64_t rebuild_margin(std::uint64_t data_blocks, std::uint64_t block_size) {
  const std::uint64_t least = std::min((std::uint64_t{1} << 20) / block_size, data_blocks / 8);
  return std::min(std::max(data_blocks / 32, least), (std::uint64_t{64} << 20) / block_size);
}

// Blocks that must be free on all disks together, so that data that are stored twice, each on two disks, can be stored
// twice again without any `lost` of the disks: all that the disks but the largest ones cannot hold as pairs, with their
// margins. `data_blocks`: the size of each disk that takes data. 0 if fewer than two disks would be left, because then
// nothing can be stored twice.
inline std::uint64_t spare_blocks(std::span<const std::uint64_t> data_blocks, std::size_t lost,
                                  std::uint64_t block_size) {
  if (lost == 0) return 0;
  std::vector<std::uint64_t> sizes(data_blocks.begin(), data_blocks.end());
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  if (sizes.size() < lost + 2) return 0;
  const std::uint64_t all = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  sizes.erase(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(lost));
  for (std::uint64_t& size : sizes) size -= rebuild_margin(size, block_size);
  return all - 2 * pairs_in(sizes);
}

}  // namespace mdfs::store
