// Random shapes, extents and boxes, small enough to compare byte by byte.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "geometry/decompose.h"

namespace mdfs::geometry::testing {

// Draws from the running rapidcheck property; call inside one only.
unsigned any_rank();
Coord any_lengths(unsigned rank, std::uint64_t low, std::uint64_t high);  // each in [low, high)
Box any_box(unsigned rank, const Coord& shape);                           // not empty, inside

struct GeometryAndBox {
  ByteGeometry geometry;
  Box box;
};
GeometryAndBox any_geometry_and_box();
Geometry any_geometry();                      // passes check()
Window any_window(const Geometry& geometry);  // passes check()

// Row-major position of an index.
std::uint64_t linear(unsigned rank, const Coord& shape, const Coord& index);
std::uint64_t volume(unsigned rank, const Coord& length);
// Calls visit(index) for every index of a box, in row-major order.
template <typename Visit>
void each_index(unsigned rank, const Coord& start, const Coord& length, Visit visit) {
  if (volume(rank, length) == 0) return;
  Coord index = start;
  for (;;) {
    visit(index);
    unsigned axis = rank;
    for (; axis > 0; --axis) {
      if (++index[axis - 1] < start[axis - 1] + length[axis - 1]) break;
      index[axis - 1] = start[axis - 1];
    }
    if (axis == 0) return;
  }
}

}  // namespace mdfs::geometry::testing
