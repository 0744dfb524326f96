// Which distribution of a machine file describes the latencies of a disk: fitted, and judged on held-out reads. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sim/timed_read.h"

namespace mdfs::sim {

// The part of a read's time that its bytes do not explain, as a machine file can state it (mdfs-machine(5)).
struct LatencyDistribution {
  enum class Kind {
    kConstant,     // low_s
    kUniform,      // low_s .. high_s
    kExponential,  // low_s, plus a random time with the mean high_s
    kHead,         // low_s + (high_s - low_s) sqrt(distance / capacity_bytes), plus a random time from 0 to rotation_s
  };
  Kind kind = Kind::kConstant;
  double low_s = 0;
  double high_s = 0;
  double rotation_s = 0;
  double capacity_bytes = 0;

  unsigned parameters() const;
  double mean_s(double distance_bytes) const;
  // The time that a share of the reads at this distance stays below; share in [0, 1).
  double quantile_s(double share, double distance_bytes) const;
  // As the costs of a stage, quoted and separated by commas. The head itself belongs to the resource.
  std::string costs_text() const;
};
std::string kind_text(LatencyDistribution::Kind kind);

// seconds = a draw of `latency` + bytes * seconds_per_byte.
struct ReadModel {
  LatencyDistribution latency;
  double seconds_per_byte = 0;
};

// How well models describe reads that were not used to fit them: each quarter of the reads by the fit to the other
// three. Times are taken relative to the mean time of their size.
struct HeldOut {
  std::size_t reads = 0;  // 0: too few reads to hold any out; all else is then 0
  double distance = 0;    // mean difference of the quantiles up to kTrusted, measured and of the model
  double mean_error = 0;  // measured / model - 1
  double median_error = 0;
  double p95_error = 0;
};

struct FittedModel {
  ReadModel model;  // fitted to all reads
  HeldOut held_out;
  double score() const;  // the least one is chosen
};

// The slowest reads beyond this share do not take part in the choice of a distribution: other programs delay a few.
inline constexpr double kTrusted = 0.98;
// A parameter more is worth it if the quantiles come closer by so much of the time of a read.
inline constexpr double kWorthOfAParameter = 0.005;
// Largest difference at the median and at p95 of held-out reads.
inline constexpr double kLargestQuantileError = 0.20;

// All distributions that can describe the reads, the best one first. capacity_bytes: of the disk that was read, 0 if
// the distances are unknown. means_only: each time is a mean of many reads, so that no distribution but a constant can
// be told. At least three sizes.
std::vector<FittedModel> fit_latencies(std::span<const TimedRead> reads, double capacity_bytes, bool means_only);
// True if the held-out reads are within kLargestQuantileError at the median and at p95.
bool describes(const HeldOut& held_out);

}  // namespace mdfs::sim
