// The experiments: one window, random windows, fits over sizes, open and closed loads, streams, saturation.
// Every function is deterministic in its seed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "geometry/geometry.h"
#include "sim/simulation.h"
#include "sim/statistics.h"
#include "sim/system.h"

namespace mdfs::sim {

// A random position for a window of these lengths, uniform over all that fit. length[axis] in 1..shape[axis] (abort).
geometry::Window random_window(const geometry::Geometry& image, const geometry::Coord& length, Random& random);
inline constexpr std::uint64_t kMaxExtentsOfWindow = 1u << 18;  // each takes memory
// kOutOfRange, with the axis, if the lengths do not fit the image, and if the window may touch more extents.
Status check_length(const geometry::Geometry& image, const geometry::Coord& length);

struct WindowResult {
  WindowRecord record;
  std::vector<ResourceUse> use;  // from arrival to completion
  std::uint64_t events = 0;
};
// Reads one window on an idle machine.
WindowResult read_window(const System& system, const geometry::Window& window, std::uint64_t seed);

// Windows at random positions, each alone on an idle machine: delays are independent.
struct RandomResult {
  std::vector<double> delays_s;
  double window_bytes = 0;
  double mean_delay_s = 0;
  std::vector<ResourceUse> use;  // busy time over all windows / sum of delays
  double throughput() const { return mean_delay_s > 0 ? window_bytes / mean_delay_s : 0; }  // bytes/s
  // Bytes/s, by the formula of the 1994 paper (paper.h): size / delay / utilization of the busiest resource.
  double maximum_sustainable() const;
};
RandomResult read_random(const System& system, const geometry::Coord& length, unsigned positions, std::uint64_t seed);

// delay = latency + size / throughput, by least squares over the mean delays of several sizes.
struct LatencyFit {
  double latency_s = 0;
  double bytes_per_s = 0;
  double r_squared = 0;
  std::vector<double> sizes_bytes;
  std::vector<double> delays_s;
};
LatencyFit fit_sizes(const System& system, std::span<const geometry::Coord> lengths, unsigned positions,
                     std::uint64_t seed);
// Squares of side first, first + step .. last (along the two fastest axes; one thick along others).
std::vector<geometry::Coord> squares(const geometry::Geometry& image, std::uint64_t first, std::uint64_t last,
                                     std::uint64_t step);

struct LoadResult {
  std::vector<double> delays_s;          // after the warm-up, in order of arrival, one replication after another
  std::vector<double> replication_mean;  // of each replication
  Interval mean;                         // over replications; over batches if there is only one
  double requested_bytes_per_s = 0;
  double done_bytes_per_s = 0;                 // mean over replications
  double read_bytes = 0;                       // by all requests of one replication
  std::vector<double> replication_throughput;  // bytes/s of each
  std::vector<ResourceUse> use;                // mean over replications
  std::uint64_t events = 0;
};

struct LoadOptions {
  geometry::Coord length{};
  unsigned windows = 3000;  // of one replication, warm-up included
  double warm_up = 0.1;     // share of the windows that is left out at the start
  unsigned replications = 1;
  std::uint64_t seed = 1;
  bool own_images = false;  // each client reads an image of its own, not all the same one
};
// Poisson arrivals of windows at random positions.
LoadResult poisson(const System& system, const LoadOptions& options, double windows_per_s);
// `clients` that each request the next window think_s after the last one came.
LoadResult closed(const System& system, const LoadOptions& options, unsigned clients, double think_s);
// All windows requested at time 0; done_bytes_per_s is the sustained throughput. No warm-up.
LoadResult saturate(const System& system, const LoadOptions& options);

// Streams of frames: stream s requests frame i of slice k at phase_s + (k + i / frames_per_slice) * slice_s.
struct Stream {
  unsigned frames_per_slice = 1;
  double phase_s = 0;
};
struct StreamsOptions {
  std::vector<Stream> streams;
  double slice_s = 1;
  unsigned slices = 1000;
  unsigned skipped = 2;  // slices at the start that give no delays
  bool own_images = false;
  std::uint64_t seed = 1;
  std::uint64_t frame_extents = 0;  // rank 1: extents of a frame; other ranks: a frame is one step of the slowest axis
};
struct StreamsResult {
  std::vector<std::vector<double>> delays_s;  // by stream
  std::vector<double> all_delays_s;
  Interval mean;                 // batch means over slices
  std::vector<ResourceUse> use;  // over all slices
  double frames_per_s = 0;       // requested
  double bytes_per_s = 0;        // requested
  std::uint64_t late = 0;        // frames done after the next one of the same stream was due
};
Result<StreamsResult> run_streams(const System& system, const StreamsOptions& options);

// Requests at given times: windows of an image, all under one request.
struct TraceEntry {
  double time_s = 0;
  std::vector<geometry::Window> windows;
  unsigned client = 0;
  std::size_t image = 0;   // which of the systems
  std::uint64_t base = 0;  // of its placement
  bool write = false;
  // The entry of this number, an earlier one, comes before: this one begins at its time, but not before that one is
  // done.
  std::optional<std::size_t> after;
};
// Delays are in the order of the trace, each from when its request began. The systems have the same machine and disks,
// each with an image of the trace. The error bar covers the random times of the machine only: replications differ in
// nothing else.
LoadResult replay(std::span<const System> images, std::span<const TraceEntry> trace, std::uint64_t seed,
                  unsigned replications);

}  // namespace mdfs::sim
