// Takes an axis away, and puts it back.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/plane.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace mdfs::geometry {
namespace {

template <typename Values>
void take_out(Values& values, unsigned axis) {
  std::move(values.begin() + axis + 1, values.end(), values.begin() + axis);
  values.back() = {};
}

template <typename Values, typename Value>
void put_in(Values& values, unsigned axis, const Value& value) {
  std::move_backward(values.begin() + axis, values.end() - 1, values.end());
  values[axis] = value;
}

}  // namespace

Geometry plane_geometry(const Geometry& volume, unsigned axis) {
  MDFS_CHECK(volume.rank >= 2 && axis < volume.rank);
  Geometry plane = volume;
  --plane.rank;
  plane.axes.erase(axis, 1);
  take_out(plane.shape, axis);
  take_out(plane.extent, axis);
  take_out(plane.spacing, axis);
  take_out(plane.unit, axis);
  return plane;
}

Window in_volume(const Window& window, const PlaneIndex& plane) {
  Window result = window;
  put_in(result.start, plane.axis, plane.index);
  put_in(result.length, plane.axis, std::uint64_t{1});
  put_in(result.single, plane.axis, true);
  return result;
}

Coord in_volume(const Coord& numbers, unsigned axis, std::uint64_t number) {
  Coord result = numbers;
  put_in(result, axis, number);
  return result;
}

}  // namespace mdfs::geometry
