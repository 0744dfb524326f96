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

}  // namespace

HalvedAxes halved_axes(const Geometry& upper) {
  HalvedAxes halved{};
  for (unsigned axis = upper.rank < 2 ? 0 : upper.rank - 2; axis < upper.rank; ++axis)
    halved[axis] = upper.axes[axis] != 't' && upper.axes[axis] != 'c';
  if (upper.rank < 3) return halved;
  const unsigned slow = upper.rank - 3, last = upper.rank - 1;
  halved[slow] = halved[last] && is_space_axis(upper.axes[slow]) && upper.spacing[slow] > 0 &&
                 upper.spacing[last] > 0 && upper.unit[slow] == upper.unit[last] &&
                 upper.spacing[slow] <= upper.spacing[last];
  return halved;
}

Geometry geometry_above(Geometry upper) {
  const HalvedAxes halved = halved_axes(upper);
  for (unsigned axis = 0; axis < upper.rank; ++axis) {
    if (!halved[axis]) continue;
    upper.shape[axis] = ceil_div(upper.shape[axis], std::uint64_t{2});
    upper.spacing[axis] *= 2;
  }
  return upper;
}

unsigned level_count(const Geometry& image) {
  unsigned count = 0;
  for (Geometry level = image; can_halve(level); level = geometry_above(std::move(level))) ++count;
  return count;
}

Geometry level_geometry(const Geometry& image, unsigned level) {
  Geometry result = image;
  for (unsigned n = 0; n < level; ++n) {
    MDFS_CHECK(can_halve(result));
    result = geometry_above(std::move(result));
  }
  return result;
}

std::size_t place_in_box(unsigned rank, unsigned axis) {
  MDFS_CHECK(axis >= first_axis_in_box(rank) && axis < rank);
  return rank == 1 ? 1 : axis + 3 - rank;
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

unsigned useful_level_count(const Geometry& image) {
  unsigned count = 0;
  for (Geometry level = image; can_halve(level); level = geometry_above(std::move(level)), ++count) {
    const HalvedAxes halved = halved_axes(level);
    bool fits = true;
    for (unsigned axis = 0; axis < level.rank; ++axis)
      fits = fits && (!halved[axis] || level.shape[axis] <= level.extent[axis]);
    if (fits) break;
  }
  return count;
}

bool overlap(unsigned rank, const SampleBox& a, const SampleBox& b) {
  for (unsigned axis = 0; axis < rank; ++axis)
    if (a.first[axis] >= b.last[axis] || b.first[axis] >= a.last[axis]) return false;
  return true;
}

SampleBox box_of(const Geometry& geometry, const Window& window) {
  SampleBox box{window.start, window.start};
  for (unsigned axis = 0; axis < geometry.rank; ++axis) box.last[axis] += window.length[axis];
  return box;
}

SampleBox box_above(const Geometry& upper, const SampleBox& box) {
  const HalvedAxes halved = halved_axes(upper);
  SampleBox above = box;
  for (unsigned axis = 0; axis < upper.rank; ++axis) {
    if (!halved[axis]) continue;
    above.first[axis] = box.first[axis] / 2;
    above.last[axis] = ceil_div(box.last[axis], std::uint64_t{2});
  }
  return above;
}

SampleBox box_below(const Geometry& upper, const SampleBox& box) {
  const HalvedAxes halved = halved_axes(upper);
  SampleBox below = box;
  for (unsigned axis = 0; axis < upper.rank; ++axis) {
    if (!halved[axis]) continue;
    below.first[axis] = checked_mul(box.first[axis], std::uint64_t{2}).value_or(UINT64_MAX);
    below.last[axis] = checked_mul(box.last[axis], std::uint64_t{2}).value_or(UINT64_MAX);
  }
  return below;
}

SampleBox extents_of(const Geometry& geometry, const SampleBox& box) {
  SampleBox extents;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    extents.first[axis] = box.first[axis] / geometry.extent[axis];
    extents.last[axis] = ceil_div(box.last[axis], geometry.extent[axis]);
  }
  return extents;
}

SampleBox samples_of(const Geometry& geometry, const SampleBox& extents) {
  SampleBox samples;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    samples.first[axis] = checked_mul(extents.first[axis], geometry.extent[axis]).value_or(UINT64_MAX);
    samples.last[axis] = checked_mul(extents.last[axis], geometry.extent[axis]).value_or(UINT64_MAX);
  }
  return samples;
}

SampleBox whole_extents(const Geometry& geometry, const SampleBox& box) {
  return samples_of(geometry, extents_of(geometry, box));
}

SampleBox box_of_bytes(unsigned rank, const Coord& lengths, std::uint64_t sample_bytes, std::uint64_t offset,
                       std::uint64_t length) {
  SampleBox box;
  if (length == 0) return box;
  std::uint64_t first = offset / sample_bytes, last = (offset + length - 1) / sample_bytes;
  std::uint64_t step = 1;
  for (unsigned axis = 1; axis < rank; ++axis) step *= lengths[axis];
  bool together = true;  // along the axes so far, which then have one index each
  for (unsigned axis = 0; axis < rank; ++axis) {
    if (axis > 0) step /= lengths[axis];
    box.first[axis] = together ? first / step : 0;
    box.last[axis] = together ? last / step + 1 : lengths[axis];
    together = together && first / step == last / step;
    first %= step;
    last %= step;
  }
  return box;
}

}  // namespace mdfs::geometry
