// When each frame of a movie is shown: frame numbers, time stamps and frame rates. Pure.
//
// Times are nanoseconds from frame 0 on, as in GStreamer. Frame n begins at n seconds over the rate, rounded down, and
// lasts until frame n + 1 begins. Any thread may call any function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mdfs::gst {

// Frames a second. Both are above 0.
struct FrameRate {
  std::int32_t numerator = 24;
  std::int32_t denominator = 1;
  bool operator==(const FrameRate&) const = default;
};
// A frame lasts a nanosecond or more.
inline constexpr double kMaxFrameRate = 1e9;
bool is_possible(const FrameRate& rate);

inline constexpr std::uint64_t kEndOfTime = INT64_MAX;
// kEndOfTime where the frame begins later.
std::uint64_t begin_of(std::uint64_t frame, const FrameRate& rate);
// The frame that is shown at the time.
std::uint64_t frame_at(std::uint64_t time_ns, const FrameRate& rate);

// The rate of frames that lie `spacing` of `unit` apart: s, ms, us, µs, ns, min or h. Nothing: the unit is no time, or
// the spacing is unknown (0) or makes no possible rate. Rates that texts of the spacing round, such as 30000/1001, are
// found again.
std::optional<FrameRate> rate_of_spacing(double spacing, std::string_view unit);

// The frames of a seek, in the order in which they are shown. Empty if first and last are in the other order.
struct FrameOrder {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t step = 1;  // -1: backwards
  bool operator==(const FrameOrder&) const = default;
  bool is_empty() const { return (last - first) * step < 0; }
};
// Those of a movie that are shown from start_ns up to stop_ns, at most 2^62 frames; backwards from stop_ns on.
FrameOrder order_of(std::uint64_t start_ns, std::uint64_t stop_ns, bool backwards, std::uint64_t frames,
                    const FrameRate& rate);

}  // namespace mdfs::gst
