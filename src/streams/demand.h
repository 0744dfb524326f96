// What a stream asks of the disks and of memory: the reads of its frames by plan, their time, and how far it reads
// ahead. Pure: the streams of a mount and the simulator have the same rules.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "geometry/geometry.h"
#include "streams/course.h"

namespace mdfs::streams {

inline constexpr double kLeastLimit = 0.05, kMostLimit = 0.9;
inline constexpr std::size_t kMostStreams = 64;
inline constexpr unsigned kMostLookahead = 256;
inline constexpr std::uint64_t kDefaultMemoryBytes = 256u << 20;  // of frames that are read ahead
// Threads of all streams together, each of which reads some frames at a time.
inline constexpr std::size_t kReadThreads = 32;
// A trial of a disk has so many requests at a time, and the next ones when all of these have ended. What it does in the
// first fifth more of the time does not count: what a disk has saved up while it rested is over then.
inline constexpr std::size_t kTrialRequests = 8;
inline constexpr std::int64_t kTrialNs = 1'000'000'000, kTrialPartBefore = 5;

// Reads of one disk for one frame, on average.
struct DiskReads {
  double requests = 0;
  double bytes = 0;
};
// The time of a disk for these reads: each request costs as much as device::kRequestBytes more.
double cost_ns(const DiskReads& reads, double ns_per_byte);
// The length of a request in a trial for these reads.
std::uint64_t trial_request_bytes(const DiskReads& reads);

// The frames that are read from the same extents as this one, as a window, and their number: they are read once.
std::pair<geometry::Window, std::uint64_t> frames_together(const FrameWindows& windows, const Course& course,
                                                           std::uint64_t extent_length, std::uint64_t frame);
// Plans the reads of a window, by disk.
using PlanReads = std::function<Result<std::vector<DiskReads>>(const geometry::Window&)>;
// Of one frame, on average over runs of frames that lie apart along the course. After a run `is_enough` may end it.
// `extent_length`: samples of an extent along the axis.
Result<std::vector<DiskReads>> mean_reads(const FrameWindows& windows, const Course& course,
                                          std::uint64_t extent_length, const PlanReads& plan,
                                          const std::function<bool()>& is_enough);

// Frames that a stream reads ahead: as many as were asked for, or, for 0, as half a second shows, within bounds.
unsigned lookahead_of(unsigned asked, double rate, std::uint64_t frame_bytes, std::uint64_t memory_bytes);
// From the opening of a stream to its first deadline.
std::int64_t prefill_ns(unsigned lookahead, const Course& course);

}  // namespace mdfs::streams
