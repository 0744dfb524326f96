// Planes of a volume as images of two axes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "geometry/geometry.h"

namespace mdfs::geometry {

// The plane at one index along an axis.
struct PlaneIndex {
  unsigned axis = 0;
  std::uint64_t index = 0;
  bool operator==(const PlaneIndex&) const = default;
};
// The geometry of a plane: all axes but this one, of two or more.
Geometry plane_geometry(const Geometry& volume, unsigned axis);
// The window of the volume that a window of the plane is: with one index along the axis.
Window in_volume(const Window& window, const PlaneIndex& plane);
// Numbers along the axes of the plane as numbers along those of the volume, with `number` along the new one.
Coord in_volume(const Coord& numbers, unsigned axis, std::uint64_t number);

}  // namespace mdfs::geometry
