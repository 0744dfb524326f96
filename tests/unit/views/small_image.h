// Geometries of small images, for tests of views.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "geometry/geometry.h"

namespace mdfs::views {

// Extents have 16 samples along each axis.
inline geometry::Geometry make(std::string axes, geometry::Coord shape, unsigned channels, geometry::ElementType type) {
  geometry::Geometry geometry;
  geometry.rank = static_cast<unsigned>(axes.size());
  geometry.axes = std::move(axes);
  geometry.shape = shape;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) geometry.extent[axis] = 16;
  geometry.channels = channels;
  geometry.type = type;
  return geometry;
}

}  // namespace mdfs::views
