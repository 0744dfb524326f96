// How closely measured delays of windows agree with simulated ones: in the mean, at the median, and at p95. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/statistics.h"

namespace mdfs::sim {

enum class Within { kYes, kUnsure, kNo };
std::string_view within_text(Within within);  // "yes", "unsure", "no"
// kNo if one is; else kUnsure if one is.
Within worst_of(std::span<const Within> all);

// One figure of the delays.
struct Agreement {
  double simulated_s = 0;
  double measured_s = 0;
  Interval ratio;  // measured / simulated
  // kUnsure: off by more than the tolerance, but the error bar reaches into it.
  Within verdict(double tolerance) const;
};

// The delays of the same windows: measured_s[w], and simulated_s[run][w] of one or more runs of a machine with random
// times. Two windows at least; simulated delays are above 0.
struct ComparedDelays {
  std::vector<double> measured_s;
  std::vector<std::vector<double>> simulated_s;
};
// The error bar comes from the differences window by window, so that what makes one window slower than another in both
// is no part of it.
Agreement mean_agreement(const ComparedDelays& delays);
// At a share of the windows, in (0, 1), such as 0.95. The error bar comes from drawing the windows again, measured and
// simulated delays together (bootstrap); the same seed gives the same bar.
Agreement agreement_at(const ComparedDelays& delays, double share, std::uint64_t seed);

}  // namespace mdfs::sim
