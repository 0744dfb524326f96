// Shapes, orders of axes and spacings as people write them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::geometry {

struct Lengths {
  unsigned rank = 0;
  Coord length{};
  bool operator==(const Lengths&) const = default;
};
// "2048x3072": one to three numbers, slowest axis first. Zeros are read; check(Geometry) judges them.
Result<Lengths> parse_shape(std::string_view text);
std::string shape_text(unsigned rank, const Coord& lengths);

// How the axes of an array in a source file are to be understood.
struct AxesOrder {
  std::string axes;                      // without the channels, in the order of the source
  std::optional<unsigned> channel_axis;  // which axis of the source holds the channels; absent: it has one channel
  bool operator==(const AxesOrder&) const = default;
};
// "zyx", "tyx", "yxc", "cyx": one letter an axis, c for channels; others as Geometry::axes. One to three axes besides
// c.
Result<AxesOrder> parse_axes(std::string_view text);
// Without word from the user: the last axis is channels if it is 2..4 long and at least two axes precede it; the
// others are x | yx | zyx. kInvalidArgument unless one to three axes remain.
Result<AxesOrder> guess_axes(std::span<const std::uint64_t> dimensions);

struct Spacing {
  std::array<double, kMaxRank> distance{};
  std::array<std::string, kMaxRank> unit{};
  bool operator==(const Spacing&) const = default;
};
// "0.5,0.2,0.2um" or "0.04s,0.2,0.2um": a number an axis, slowest first; a number without a unit takes that of the
// next one that has any.
Result<Spacing> parse_spacing(std::string_view text, unsigned rank);

}  // namespace mdfs::geometry
