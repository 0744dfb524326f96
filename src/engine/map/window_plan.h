// The answer of a plan: the cost of reading a window.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace mdfs::engine {

struct WindowPlan {  // by the present records
  std::uint64_t extents = 0;
  std::uint64_t holes = 0;
  std::uint64_t cached = 0;
  struct PerDisk {
    std::uint64_t bytes = 0;
    std::uint64_t requests = 0;  // after merging
    std::uint64_t runs = 0;      // contiguous on the disk
  };
  std::vector<PerDisk> disks;  // by disk index of the volume
};

}  // namespace mdfs::engine
