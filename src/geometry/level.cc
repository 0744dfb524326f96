// Shapes of resolution levels.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/level.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"

namespace mdfs::geometry {
namespace {

bool can_halve(const Geometry& upper) {
  const HalvedAxes halved = halved_axes(upper);
  for (unsigned axis = 0; axis < upper.rank; ++axis)
    if (halved[axis] && upper.shape[axis] > 1) return true;
  return false;
}

Geometry next_level(Geometry upper) {
  const HalvedAxes halved = halved_axes(upper);
  for (unsigned axis = 0; axis < upper.rank; ++axis) {
    if (!halved[axis]) continue;
    upper.shape[axis] = ceil_div(upper.shape[axis], std::uint64_t{2});
    upper.spacing[axis] *= 2;
  }
  return upper;
}

}  // namespace

HalvedAxes halved_axes(const Geometry& upper) {
  HalvedAxes halved{};
  for (unsigned axis = upper.rank < 2 ? 0 : upper.rank - 2; axis < upper.rank; ++axis)
    halved[axis] = upper.axes[axis] != 't';
  if (upper.rank < 3) return halved;
  const unsigned slow = upper.rank - 3, last = upper.rank - 1;
  halved[slow] = halved[last] && is_space_axis(upper.axes[slow]) && upper.spacing[slow] > 0 &&
                 upper.spacing[last] > 0 && upper.unit[slow] == upper.unit[last] &&
                 upper.spacing[slow] <= upper.spacing[last];
  return halved;
}

unsigned level_count(const Geometry& image) {
  unsigned count = 0;
  for (Geometry level = image; can_halve(level); level = next_level(std::move(level))) ++count;
  return count;
}

Geometry level_geometry(const Geometry& image, unsigned level) {
  Geometry result = image;
  for (unsigned n = 0; n < level; ++n) {
    MDFS_CHECK(can_halve(result));
    result = next_level(std::move(result));
  }
  return result;
}

Window source_window(const Geometry& upper, const Window& window) {
  const HalvedAxes halved = halved_axes(upper);
  Window source = window;
  source.single = {};
  for (unsigned axis = 0; axis < upper.rank; ++axis) {
    if (!halved[axis]) continue;
    source.start[axis] = 2 * window.start[axis];
    source.length[axis] =
        std::min(upper.shape[axis], 2 * (window.start[axis] + window.length[axis])) - source.start[axis];
  }
  return source;
}

}  // namespace mdfs::geometry
