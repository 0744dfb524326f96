// Resolution levels of an image: their shapes, and the samples that a window of a level is made of.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::geometry {

// The axes that are halved between two levels.
using HalvedAxes = std::array<bool, kMaxRank>;

// Level n + 1 halves axes of level n, so that each sample of it stands for up to two samples along each such axis.
// `upper` is the geometry of level n (the image itself is level 0). The axes of the plane are halved, which are the
// last two axes, unless one is the time t. The axis before them is halved as well if it is an axis of space whose
// spacing, in the same unit, is not coarser than that of the last axis. An unknown spacing leaves it as it is.
HalvedAxes halved_axes(const Geometry& upper);
// Levels above the image: the last one is the first whose halved axes all have at most one sample.
unsigned level_count(const Geometry& image);
// The geometry of one level, at most level_count() (abort): ceil(n / 2) samples along a halved axis, with twice the
// spacing. The rest is that of the image.
Geometry level_geometry(const Geometry& image, unsigned level);
// The window of the level `upper` whose samples make the samples of a window one level above it. The window must have
// been checked there. No axis is a single index, and the channel is the same.
Window source_window(const Geometry& upper, const Window& window);

}  // namespace mdfs::geometry
