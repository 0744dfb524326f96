// Parses and prints shapes, orders of axes and spacings.
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

// A length for each axis, slowest first.
struct Lengths {
  unsigned rank = 0;
  Coord length{};
  bool operator==(const Lengths&) const = default;
};
// Parses "2048x3072": one to five numbers, slowest axis first. Accepts zeros; check(Geometry) decides about them.
// kInvalidArgument for other text, kOverflow for a number beyond 64 bits.
Result<Lengths> parse_shape(std::string_view text);
// The text that parse_shape() parses.
std::string shape_text(unsigned rank, const Coord& lengths);

// Meaning of the axes of an array in a source file.
struct AxesOrder {
  std::string axes;                      // without channels, in the order of the source
  std::optional<unsigned> channel_axis;  // axis of the source with the channels; absent: one channel
  bool operator==(const AxesOrder&) const = default;
};
// Parses "zyx", "tyx", "yxc", "tczyx": one letter for each axis, as in Geometry::axes. A last c stands for interleaved
// channels, another c for an axis. One to five axes besides channels, each once; else kInvalidArgument.
Result<AxesOrder> parse_axes(std::string_view text);
// The default: the last axis is channels if its length is 2..4 and at least two axes precede it; the
// others have the names of default_axes(). kInvalidArgument unless one to five axes remain.
Result<AxesOrder> guess_axes(std::span<const std::uint64_t> dimensions);

// Distance between samples along each axis, slowest first, and its unit.
struct Spacing {
  std::array<double, kMaxRank> distance{};
  std::array<std::string, kMaxRank> unit{};
  bool operator==(const Spacing&) const = default;
};
// Parses "0.5,0.2,0.2um" or "0.04s,0.2,0.2um": a positive number for each axis, slowest first. A number without a unit
// takes the unit of the next number with a unit. Else kInvalidArgument.
Result<Spacing> parse_spacing(std::string_view text, unsigned rank);

}  // namespace mdfs::geometry
