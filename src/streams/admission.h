// Admission: does a stream fit beside those that are accepted? Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mdfs::streams {

// What one frame takes of each disk, in nanoseconds of its time: a mean over frames of the stream.
using FrameCost = std::vector<double>;
// The share of the time that each disk is busy for accepted streams.
using Loads = std::vector<double>;

// A further trial of the disks may find them slower by so much. The rate that is named is still accepted then.
inline constexpr double kTrialMargin = 0.1;

struct Admission {
  bool accepted = false;
  // Frames per second, kTrialMargin below the highest rate that is accepted now; infinite if the frames need no disk.
  double rate_that_fits = 0;
  unsigned busiest = 0;  // the disk that limits it
  double load = 0;       // of that disk, with the stream at the rate asked for
};

// Accepted if every disk stays busy for at most `limit` of the time. With the earliest deadline first and frames read
// ahead, a set that stays below 1 misses no deadline (Liu and Layland, 1973: utilization of at most 1), apart from the
// requests that a disk has at the time, which cannot be interrupted; the limit leaves room for these.
Admission admit(std::span<const double> reserved, const FrameCost& frame, double rate, double limit);

void add_load(Loads& loads, const FrameCost& frame, double rate);
void take_load(Loads& loads, const FrameCost& frame, double rate);

}  // namespace mdfs::streams
