// Latency and throughput of a real disk from timed reads of several sizes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace mdfs::sim {

struct TimedRead {
  double bytes = 0;
  double seconds = 0;
};

// delay = latency_s + bytes / bytes_per_s. Weighted least squares over the mean delay of each size, each weighted with
// 1 / mean^2, so that small and large reads count equally. A line that would begin below 0 goes through 0.
struct Calibration {
  struct Row {
    double bytes = 0;
    std::size_t reads = 0;
    double mean_s = 0;
    double half_width_s = 0;  // 95 %
    double fitted_s = 0;
    double relative_residual = 0;  // (mean - fitted) / mean
  };
  double latency_s = 0;
  double bytes_per_s = 0;
  double r_squared = 0;  // weighted
  std::vector<Row> rows;
};

inline constexpr double kLeastRSquared = 0.95;
inline constexpr double kLargestResidual = 0.30;

// kInvalidArgument: fewer than three sizes.
Result<Calibration> calibrate(std::span<const TimedRead> reads);
// kOutOfRange with the reason if a straight line does not describe the disk: no throughput,
// R^2 below kLeastRSquared, or a size with a residual above kLargestResidual.
Status judge(const Calibration& calibration);
// A machine of `disks` such disks that work in parallel.
std::string machine_text(const Calibration& calibration, const std::string& name, const std::string& origin,
                         unsigned disks);

}  // namespace mdfs::sim
