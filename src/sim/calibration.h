// Latency and throughput of a real disk from timed reads of several sizes, and the machine file that states them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/latency_distribution.h"
#include "sim/timed_read.h"

namespace mdfs::sim {

// delay = latency + bytes / bytes_per_s, with a latency of one of the distributions that a machine file can state.
struct Calibration {
  struct Row {
    SizeMean measured;
    double fitted_s = 0;
    double relative_residual = 0;  // (mean - fitted) / mean
  };
  ReadModel model;          // the best of the candidates
  double latency_s = 0;     // its mean over the reads
  double bytes_per_s = 0;   // 0: larger reads take no longer
  double r_squared = 0;     // of the means, each weighted with 1 / mean^2
  HeldOut held_out;         // of the best candidate
  bool means_only = false;  // each time is a mean of many reads
  std::vector<Row> rows;
  std::vector<FittedModel> candidates;  // the best one first
};

inline constexpr double kLeastRSquared = 0.95;
inline constexpr double kLargestResidual = 0.30;

// capacity_bytes and means_only as for fit_latencies(). kInvalidArgument: fewer than three sizes, or reads without
// time.
Result<Calibration> calibrate(std::span<const TimedRead> reads, double capacity_bytes, bool means_only);
// kOutOfRange with the reason if a straight line does not describe the disk: no throughput, or a size with a residual
// above kLargestResidual. Also R^2 below kLeastRSquared, unless a random latency describes the held-out reads: the
// means of few random times lie on no line.
Status judge(const Calibration& calibration);
// A machine of `disks` such disks that work in parallel.
std::string machine_text(const Calibration& calibration, const std::string& name, const std::string& origin,
                         unsigned disks);

}  // namespace mdfs::sim
