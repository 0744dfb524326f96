// The machines and loads of the published experiments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "geometry/geometry.h"
#include "sim/experiment.h"
#include "sim/system.h"

namespace mdfs::sim {

inline constexpr unsigned kRandomPositions = 600;  // ten times the papers' number: the mean is that of the model
inline constexpr unsigned kFitPositions = 15;
inline constexpr unsigned kBacklogWindows = 400;
inline constexpr unsigned kPoissonWindows = 3000;
inline constexpr std::uint64_t kFrameBytes = 400u << 10;
inline constexpr unsigned kFrameExtents = 8;
inline constexpr unsigned kTimeSlices = 1000;

// A shipped machine with this many disks, and its own image.
Result<System> preset_system(const std::string& name, unsigned disks);
// The same with frames of 400 KiB, one after another, in 8 extents each.
Result<System> frame_system(const std::string& name, unsigned disks, bool uniform_seeks);
Result<System> frame_system(const model::Machine& machine, unsigned disks, bool uniform_seeks);
// A FIFO with this service time for every window of the usual image.
Result<System> fixed_system(double service_s);

// Rows, columns.
inline geometry::Coord plane(std::uint64_t height, std::uint64_t width) { return {height, width, 0}; }

// Throughput and latency by a straight line through squares of side 512, 576 .. 1536, each at so many positions.
LatencyFit fit_squares(const System& system, std::uint64_t seed, unsigned positions = kFitPositions);

// Poisson loads on a system and on a fixed server of the same delay.
struct PoissonPair {
  double single_delay_s = 0;  // of one window alone
  double utilization = 0;     // of the disks, then
  double system_s = 0;        // mean delay under load
  double fixed_s = 0;
};
// Both at share / single_delay windows a second.
Result<PoissonPair> same_load(const System& system, const geometry::Coord& length, double share,
                              const LoadOptions& options);
// The system at share x size / delay / utilization, the fixed server at that times utilization.
Result<PoissonPair> scaled_load(const System& system, const geometry::Coord& length, double share,
                                const LoadOptions& options);

}  // namespace mdfs::sim
