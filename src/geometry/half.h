// IEEE-754 binary16, which the compiler does not know.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace mdfs::geometry {

struct Half {
  std::uint16_t bits;
};

double to_double(Half half);
// Rounded to the nearest, halves to even.
Half to_half(double value);

}  // namespace mdfs::geometry
