// Timed reads of a disk, their mean of each size, and the straight line through the means. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sim/statistics.h"

namespace mdfs::sim {

struct TimedRead {
  double bytes = 0;
  double seconds = 0;
  double distance_bytes = 0;  // from the end of the read before, for disks whose head moves
};

struct SizeMean {
  double bytes = 0;
  std::size_t reads = 0;
  double mean_s = 0;
  double half_width_s = 0;  // 95 %
};
// In order of size.
std::vector<SizeMean> means_by_size(std::span<const TimedRead> reads);

// mean = a + b * bytes. Weighted least squares over the mean of each size, each weighted with 1 / mean^2, so that small
// and large reads count equally. A line that would begin below 0 goes through 0. Means above 0, two sizes at least.
Line fit_means(std::span<const SizeMean> means);

}  // namespace mdfs::sim
