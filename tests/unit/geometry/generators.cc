// Random shapes, extents and boxes.
// SPDX-License-Identifier: Apache-2.0
#include "generators.h"

#include <rapidcheck.h>

#include <algorithm>

#include "geometry/default_extent.h"

namespace mdfs::geometry::testing {
namespace {

// Uniform in [low, high) from the first run on, unlike inRange, which starts with small ranges.
std::uint64_t between(std::uint64_t low, std::uint64_t high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high));
}

}  // namespace

unsigned any_rank() { return static_cast<unsigned>(between(1, kMaxRank + 1)); }

// Of four and five axes shorter ones, so that there are about as many in all.
Coord any_lengths(unsigned rank, std::uint64_t low, std::uint64_t high) {
  Coord lengths{};
  if (rank > 3) high = std::min(high, std::max(low + 1, high / (rank - 2)));
  for (unsigned axis = 0; axis < rank; ++axis) lengths[axis] = between(low, high);
  return lengths;
}

Box any_box(unsigned rank, const Coord& shape) {
  Box box;
  for (unsigned axis = 0; axis < rank; ++axis) {
    box.start[axis] = between(0, shape[axis]);
    box.length[axis] = between(1, shape[axis] - box.start[axis] + 1);
  }
  return box;
}

GeometryAndBox any_geometry_and_box() {
  GeometryAndBox result;
  const unsigned rank = any_rank();
  result.geometry = {rank, any_lengths(rank, 1, 24), any_lengths(rank, 1, 10)};
  result.box = any_box(rank, result.geometry.shape);
  return result;
}

Geometry any_geometry() {
  Geometry geometry;
  geometry.rank = any_rank();
  geometry.shape = any_lengths(geometry.rank, 1, 24);
  geometry.extent = any_lengths(geometry.rank, 1, 10);
  geometry.channels = *rc::gen::inRange(1u, 5u);
  geometry.type = static_cast<ElementType>(*rc::gen::inRange(1, 12));
  geometry.axes = default_axes(geometry.rank, geometry.rank > 2 && *rc::gen::arbitrary<bool>(), geometry.channels > 1);
  return geometry;
}

Window any_window(const Geometry& geometry) {
  const Box box = any_box(geometry.rank, geometry.shape);
  Window window;
  window.start = box.start;
  window.length = box.length;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    window.single[axis] = *rc::gen::element(false, false, true);
    if (window.single[axis]) window.length[axis] = 1;
  }
  if (geometry.channels > 1 && *rc::gen::arbitrary<bool>()) window.channel = *rc::gen::inRange(0u, geometry.channels);
  return window;
}

std::uint64_t linear(unsigned rank, const Coord& shape, const Coord& index) {
  std::uint64_t position = 0;
  for (unsigned axis = 0; axis < rank; ++axis) position = position * shape[axis] + index[axis];
  return position;
}

std::uint64_t volume(unsigned rank, const Coord& length) {
  std::uint64_t product = 1;
  for (unsigned axis = 0; axis < rank; ++axis) product *= length[axis];
  return product;
}

}  // namespace mdfs::geometry::testing
