// Ranges of display.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/display.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "geometry/sample_type.h"

namespace mdfs::geometry {
namespace {

// Whether the text is a finite number, which `value` then is.
bool parse_finite(std::string_view text, double& value) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc{} && end == text.data() + text.size() && std::isfinite(value);
}

template <typename T>
T load(ConstBytes samples, std::size_t number) {
  T sample;
  std::memcpy(&sample, samples.data() + number * sizeof sample, sizeof sample);
  return sample;
}

double sample_value(Half value) { return to_double(value); }
template <typename T>
double sample_value(T value) {
  return static_cast<double>(value);
}

template <typename T>
void show(const DisplayRange& range, ConstBytes samples, MutableBytes into) {
  constexpr double kWhite = 255;
  // Halves first: the difference of two finite numbers need not be finite.
  const double half_width = range.white / 2 - range.black / 2;
  for (std::size_t i = 0; i < into.size(); ++i) {
    const double share = (sample_value(load<T>(samples, i)) / 2 - range.black / 2) / half_width;
    // A NaN is neither above 0 nor below.
    into[i] = static_cast<std::byte>(share > 0 ? static_cast<int>(std::lround(std::min(share, 1.0) * kWhite)) : 0);
  }
}

template <typename T>
std::vector<double> finite_values(ConstBytes samples) {
  std::vector<double> values;
  values.reserve(samples.size() / sizeof(T));
  for (std::size_t i = 0; i < samples.size() / sizeof(T); ++i)
    if (const double value = sample_value(load<T>(samples, i)); std::isfinite(value)) values.push_back(value);
  return values;
}

}  // namespace

Result<DisplayRange> parse_display(std::string_view text) {
  const std::size_t comma = std::min(text.find(','), text.size());
  DisplayRange range;
  if (comma < text.size() && parse_finite(text.substr(0, comma), range.black) &&
      parse_finite(text.substr(comma + 1), range.white) && range.black != range.white)
    return range;
  return Error{Errc::kInvalidArgument, fmt::format("'{}' must be BLACK,WHITE: two finite numbers that differ", text)};
}

std::string to_text(const DisplayRange& range) { return fmt::format("{},{}", range.black, range.white); }

void to_8_bits(ElementType type, const DisplayRange& range, ConstBytes samples, MutableBytes into) {
  MDFS_CHECK(samples.size() == into.size() * element_bytes(type));
  with_type(type, [&](auto sample) { show<decltype(sample)>(range, samples, into); });
}

Result<DisplayRange> automatic_display(ElementType type, ConstBytes samples) {
  constexpr std::size_t kOutside = 1000;  // one of so many is darker, one is lighter
  MDFS_CHECK(samples.size() % element_bytes(type) == 0);
  std::vector<double> values = with_type(type, [&](auto sample) { return finite_values<decltype(sample)>(samples); });
  if (values.empty()) return Error{Errc::kNoData, "no sample is a finite number"};
  const auto at = [&](std::size_t rank) {
    const auto nth = values.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(values.begin(), nth, values.end());
    return *nth;
  };
  const std::size_t outside = values.size() / kOutside;
  DisplayRange range{at(outside), at(values.size() - 1 - outside)};
  if (range.black == range.white) range.white = std::max(range.black + 1, std::nextafter(range.black, HUGE_VAL));
  return range;
}

}  // namespace mdfs::geometry
