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

// Blocks that must be free on all disks together, so that data that are stored twice, each on two disks, can be stored
// twice again without any `lost` of the disks: all that the disks but the largest ones cannot hold as pairs.
// `data_blocks`: the size of each disk that takes data. 0 if fewer than two disks would be left, because then nothing
// can be stored twice.
inline std::uint64_t spare_blocks(std::span<const std::uint64_t> data_blocks, std::size_t lost) {
  if (lost == 0) return 0;
  std::vector<std::uint64_t> sizes(data_blocks.begin(), data_blocks.end());
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  if (sizes.size() < lost + 2) return 0;
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}) - 2 * pairs_in(std::span(sizes).subspan(lost));
}

}  // namespace mdfs::store
