// Conversion of binary16.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/half.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mdfs::geometry {

double to_double(Half half) {
  const int exponent = (half.bits >> 10) & 0x1f, fraction = half.bits & 0x3ff;
  double value = 0;
  if (exponent == 0x1f)
    value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  else
    value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 0x400, exponent - 25);
  return (half.bits & 0x8000) != 0 ? -value : value;
}

Half to_half(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (std::isnan(value)) return {static_cast<std::uint16_t>(sign | 0x7e00)};
  if (size >= 65520) return {static_cast<std::uint16_t>(sign | 0x7c00)};
  if (size == 0) return {sign};
  // In units of the last place, a whole number after rounding. The carry into the next exponent comes by itself.
  const int exponent = std::max(std::ilogb(size), -14);
  const auto places = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return {static_cast<std::uint16_t>(sign | (places + ((exponent + 14) << 10)))};
}

}  // namespace mdfs::geometry
