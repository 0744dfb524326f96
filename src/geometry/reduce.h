// Reductions of neighbouring samples: how a resolution level is made of the level below.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::geometry {

// Values: MDFS_REDUCE_* in ondisk.h.
enum class Reduction : std::uint8_t { kMean = 1, kNearest = 2, kMax = 3 };
inline constexpr unsigned kReductions = 3;
std::string_view name(Reduction reduction);                // "mean", "nearest", "max"
Result<Reduction> parse_reduction(std::string_view text);  // kInvalidArgument lists the names

// A box of samples as planes of rows, fastest axis last, and the steps that become one along each axis: 1 or 2.
struct ReducedBox {
  std::array<std::uint64_t, 3> length{};  // of the box that is reduced
  std::array<std::uint64_t, 3> step = {1, 1, 1};
  unsigned channels = 1;  // interleaved

  std::uint64_t result(unsigned axis) const { return (length[axis] + step[axis] - 1) / step[axis]; }
};

// Fills `into` with the reduction of each step x step x step samples of `from`, of fewer at the end of an axis, each
// channel for itself. Both are dense and little endian, and have the sizes that the box gives (abort).
// kMean: integers are rounded to the nearest, halves to even. Floats are added as f64, slowest axis first, and rounded
// once to their type in the same way. kNearest: the first sample along each axis, bit by bit. kMax: the largest sample.
// A NaN among the samples makes their mean and maximum a NaN.
void reduce(Reduction reduction, ElementType type, const ReducedBox& box, ConstBytes from, MutableBytes into);

}  // namespace mdfs::geometry
