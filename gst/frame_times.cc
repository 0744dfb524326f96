// Times of frames.
// SPDX-License-Identifier: Apache-2.0
#include "frame_times.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace mdfs::gst {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr double kTolerance = 1e-9;  // of a rate beside the fraction that is taken for it
constexpr double kMaxTerm = 1e9;     // of numerators and denominators

struct TimeUnit {
  std::string_view name;
  double seconds;
};
constexpr TimeUnit kTimeUnits[] = {{"s", 1},          {"ms", 1e-3}, {"us", 1e-6}, {"\u00b5s", 1e-6},
                                   {"\u03bcs", 1e-6}, {"ns", 1e-9}, {"min", 60},  {"h", 3600}};

// The continued fraction, up to the first convergent that is as good as the text of a spacing.
std::optional<FrameRate> nearest_fraction(double value) {
  double before_numerator = 0, before_denominator = 1, numerator = 1, denominator = 0, rest = value;
  while (true) {
    const double whole = std::floor(rest);
    before_numerator = std::exchange(numerator, whole * numerator + before_numerator);
    before_denominator = std::exchange(denominator, whole * denominator + before_denominator);
    if (numerator > kMaxTerm || denominator > kMaxTerm) return std::nullopt;
    const bool good = std::fabs(numerator / denominator - value) <= kTolerance * value;
    if (good) return FrameRate{static_cast<std::int32_t>(numerator), static_cast<std::int32_t>(denominator)};
    rest = 1 / (rest - whole);
  }
}

}  // namespace

bool is_possible(const FrameRate& rate) {
  return rate.numerator > 0 && rate.denominator > 0 &&
         static_cast<double>(rate.numerator) / rate.denominator <= kMaxFrameRate;
}

std::uint64_t begin_of(std::uint64_t frame, const FrameRate& rate) {
  const auto numerator = static_cast<std::uint64_t>(rate.numerator);
  const auto denominator = static_cast<std::uint64_t>(rate.denominator);
  const Wide time = static_cast<Wide>(frame) * (kSecond * denominator) / numerator;
  return time > kEndOfTime ? kEndOfTime : static_cast<std::uint64_t>(time);
}

std::uint64_t frame_at(std::uint64_t time_ns, const FrameRate& rate) {
  const auto numerator = static_cast<std::uint64_t>(rate.numerator);
  const auto denominator = static_cast<std::uint64_t>(rate.denominator);
  // A frame begins at its exact time or less than a nanosecond before: the next one may have begun.
  const auto frame = static_cast<std::uint64_t>(static_cast<Wide>(time_ns) * numerator / (kSecond * denominator));
  return begin_of(frame + 1, rate) <= time_ns ? frame + 1 : frame;
}

std::optional<FrameRate> rate_of_spacing(double spacing, std::string_view unit) {
  const auto found = std::find_if(std::begin(kTimeUnits), std::end(kTimeUnits),
                                  [&](const TimeUnit& known) { return known.name == unit; });
  if (found == std::end(kTimeUnits) || !(spacing > 0)) return std::nullopt;
  const double rate = 1 / (spacing * found->seconds);
  if (!(rate >= 1 / kMaxTerm && rate <= kMaxFrameRate)) return std::nullopt;
  return nearest_fraction(rate);
}

FrameOrder order_of(std::uint64_t start_ns, std::uint64_t stop_ns, bool backwards, std::uint64_t frames,
                    const FrameRate& rate) {
  const std::uint64_t end_ns = std::min(stop_ns, begin_of(frames, rate));
  // The last frame begins before the end.
  const std::int64_t last = end_ns > 0 ? static_cast<std::int64_t>(frame_at(end_ns - 1, rate)) : -1;
  const auto first = static_cast<std::int64_t>(std::min(frame_at(start_ns, rate), frames));
  if (start_ns >= end_ns) return backwards ? FrameOrder{-1, 0, -1} : FrameOrder{0, -1, 1};
  return backwards ? FrameOrder{last, first, -1} : FrameOrder{first, last, 1};
}

}  // namespace mdfs::gst
