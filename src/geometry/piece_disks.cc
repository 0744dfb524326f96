// Disks for another piece.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/piece_disks.h"

#include <algorithm>

#include "base/check.h"

namespace mdfs::geometry {

std::vector<std::uint16_t> disks_by_room(std::uint64_t taken, std::span<const std::uint64_t> free_blocks,
                                         std::optional<unsigned> wanted) {
  MDFS_CHECK(free_blocks.size() <= 64);
  std::vector<std::uint16_t> disks;
  for (std::uint16_t disk = 0; disk < free_blocks.size(); ++disk)
    if ((taken >> disk & 1) == 0) disks.push_back(disk);
  std::stable_sort(disks.begin(), disks.end(), [&](std::uint16_t one, std::uint16_t other) {
    if (one == wanted || other == wanted) return one == wanted && other != one;
    return free_blocks[one] > free_blocks[other];
  });
  return disks;
}

}  // namespace mdfs::geometry
