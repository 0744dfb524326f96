// A run of blocks on one disk.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace mdfs::alloc {

struct Run {
  std::uint16_t disk = 0;
  std::uint64_t block = 0;  // first, in units of the volume's block size
  std::uint32_t blocks = 0;
  std::uint64_t end() const { return block + blocks; }
  auto operator<=>(const Run&) const = default;
};

// Sorted, with adjacent runs of a disk joined up to the largest length of a run. The runs must not overlap.
std::vector<Run> merged(std::vector<Run> runs);

}  // namespace mdfs::alloc
