// The course of a stream: which frame it shows when. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::streams {

// Frames per second. Slower than a frame in 1000 seconds is a pause; faster than a million no disk is.
inline constexpr double kLeastRate = 0.001, kMostRate = 1e6;
inline constexpr double kNsOfSecond = 1e9;

// A window that advances along one axis. Frame 0 is the one at the axis' first sample, and frame i begins i frame
// lengths behind it; a course visits `first`, `first + step`, `first + 2 step`, ..
struct Course {
  std::uint64_t frames = 0;  // there are along the axis
  std::uint64_t first = 0;
  std::int64_t step = 1;      // below 0: backwards; not 0
  double rate = 0;            // frames per second
  std::int64_t start_ns = 0;  // the deadline of the first frame, on the monotonic clock

  bool operator==(const Course&) const = default;
};

// kOutOfRange, kInvalidArgument: the step, the rate or the first frame is not within its range, which the error names.
Status check(const Course& course);
// The index of the n-th frame; absent: the course has ended.
std::optional<std::uint64_t> frame_at(const Course& course, std::uint64_t n);
// How many frames the course has.
std::uint64_t frame_count(const Course& course);
std::int64_t deadline_ns(const Course& course, std::uint64_t n);
// The time from one frame to the next.
std::int64_t period_ns(const Course& course);

// The frames of an image or level: `window` is one of them, a box inside it (checked) whose length along the axis is
// that of each frame. The last frame may be incomplete; it is left out.
struct FrameWindows {
  geometry::Window window;
  unsigned axis = 0;
  std::uint64_t frames = 0;  // along the axis
  std::uint64_t first = 0;   // the frame that `window` is

  geometry::Window at(std::uint64_t frame) const;
};
// kInvalidArgument: no such axis, or the window does not begin at a whole number of frames.
Result<FrameWindows> frame_windows(const geometry::Geometry& geometry, const geometry::Window& window, unsigned axis);

}  // namespace mdfs::streams
