// Resolution levels of an image: their shapes, and the samples that a window of a level is made of.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::geometry {

// The axes that are halved between two levels.
using HalvedAxes = std::array<bool, kMaxRank>;

// Level n + 1 halves axes of level n, so that each sample of it stands for up to two samples along each such axis.
// `upper` is the geometry of level n (the image itself is level 0). The axes of the plane are halved, which are the
// last two axes, unless one is the time t or channels c. The axis before them is halved as well if it is an axis of
// space whose spacing, in the same unit, is not coarser than that of the last axis. An unknown spacing leaves it as it
// is.
HalvedAxes halved_axes(const Geometry& upper);
// The geometry one level above: ceil(n / 2) samples along a halved axis, with twice the spacing.
Geometry geometry_above(Geometry upper);
// Levels above the image: the last one is the first whose halved axes all have at most one sample.
unsigned level_count(const Geometry& image);
// The geometry of one level, at most level_count() (abort).
Geometry level_geometry(const Geometry& image, unsigned level);
// The position of an axis in a ReducedBox (geometry/reduce.h): of planes, rows or columns. A signal has rows of one
// sample. The axes before first_axis_in_box() are never halved; each of their indices has a box of its own.
inline constexpr unsigned first_axis_in_box(unsigned rank) { return rank < 3 ? 0 : rank - 3; }
std::size_t place_in_box(unsigned rank, unsigned axis);
// The window of the level `upper` whose samples make the samples of a window one level above it. The window must have
// been checked there. No axis is a single index, and the channel is the same.
Window source_window(const Geometry& upper, const Window& window);
// Levels that are stored by default: up to the first one with a single extent along its halved axes.
unsigned useful_level_count(const Geometry& image);

// Samples [first, last) along each axis, perhaps beyond the end of the image.
struct SampleBox {
  Coord first{};
  Coord last{};
  bool operator==(const SampleBox&) const = default;
};
bool overlap(unsigned rank, const SampleBox& a, const SampleBox& b);
SampleBox box_of(const Geometry& geometry, const Window& window);
// The samples one level above `upper` that are made of any of these, and the samples of `upper` that make these,
// without regard to the end of the image.
SampleBox box_above(const Geometry& upper, const SampleBox& box);
SampleBox box_below(const Geometry& upper, const SampleBox& box);
// The extents that hold any of these samples, as a box of the grid; the samples of a box of the grid, without regard to
// the end of the image; and both in one: the samples of all extents that hold any of these.
SampleBox extents_of(const Geometry& geometry, const SampleBox& box);
SampleBox samples_of(const Geometry& geometry, const SampleBox& extents);
SampleBox whole_extents(const Geometry& geometry, const SampleBox& box);
// A box around bytes [offset, offset + length) of an array of these lengths, whose first axis has no end. Not empty
// unless `length` is 0.
SampleBox box_of_bytes(unsigned rank, const Coord& lengths, std::uint64_t sample_bytes, std::uint64_t offset,
                       std::uint64_t length);

}  // namespace mdfs::geometry
