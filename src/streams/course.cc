// Frames and deadlines.
// SPDX-License-Identifier: Apache-2.0
#include "streams/course.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace mdfs::streams {
namespace {

// Beyond it a deadline does not fit; a course of 100 years is over by then.
constexpr double kMostNs = 3.2e18;

}  // namespace

Status check(const Course& course) {
  if (course.first >= course.frames)
    return {Errc::kOutOfRange, fmt::format("frame {}: there are {} frames, from 0", course.first, course.frames)};
  if (course.step == 0 || course.step == INT64_MIN)
    return {Errc::kInvalidArgument, fmt::format("step {}: must be a number of frames other than 0", course.step)};
  if (!(course.rate >= kLeastRate && course.rate <= kMostRate))
    return {Errc::kInvalidArgument,
            fmt::format("rate {}: must be {} to {:.0f} frames per second", course.rate, kLeastRate, kMostRate)};
  return {};
}

std::uint64_t frame_count(const Course& course) {
  MDFS_CHECK(course.step != 0 && course.step != INT64_MIN && course.first < course.frames);
  const std::uint64_t ahead = course.step > 0 ? course.frames - 1 - course.first : course.first;
  return ahead / static_cast<std::uint64_t>(std::abs(course.step)) + 1;
}

std::optional<std::uint64_t> frame_at(const Course& course, std::uint64_t n) {
  if (n >= frame_count(course)) return std::nullopt;
  const std::uint64_t far = n * static_cast<std::uint64_t>(std::abs(course.step));
  return course.step > 0 ? course.first + far : course.first - far;
}

std::int64_t deadline_ns(const Course& course, std::uint64_t n) {
  const double after_ns = std::min(kMostNs, static_cast<double>(n) * kNsOfSecond / course.rate);
  return course.start_ns + static_cast<std::int64_t>(after_ns);
}

std::int64_t period_ns(const Course& course) { return static_cast<std::int64_t>(kNsOfSecond / course.rate); }

geometry::Window FrameWindows::at(std::uint64_t frame) const {
  MDFS_CHECK(frame < frames);
  geometry::Window moved = window;
  moved.start[axis] = frame * window.length[axis];
  return moved;
}

Result<FrameWindows> frame_windows(const geometry::Geometry& geometry, const geometry::Window& window, unsigned axis) {
  if (axis >= geometry.rank)
    return Error{Errc::kInvalidArgument, fmt::format("axis {}: the image has {} axes, from 0", axis, geometry.rank)};
  MDFS_TRY(geometry::check(geometry, window));
  const std::uint64_t length = window.length[axis];
  if (window.start[axis] % length != 0)
    return Error{Errc::kInvalidArgument,
                 fmt::format("the window begins at {} along axis {}: must be a multiple of its length there, {}",
                             window.start[axis], geometry.axes[axis], length)};
  return FrameWindows{window, axis, geometry.shape[axis] / length, window.start[axis] / length};
}

}  // namespace mdfs::streams
