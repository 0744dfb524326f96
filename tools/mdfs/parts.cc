// A window in pieces that fit in memory, and the array that a window is.
// SPDX-License-Identifier: Apache-2.0
#include "parts.h"

#include <algorithm>

#include "base/checked.h"

namespace mdfs::tools {

Status for_each_part(const geometry::Geometry& geometry, const geometry::Window& window, std::uint64_t limit_bytes,
                     const std::function<Status(const geometry::Window&)>& visit) {
  const std::uint64_t bytes = geometry::window_bytes(geometry, window);
  unsigned axis = 0;
  while (axis < geometry.rank && window.length[axis] == 1) ++axis;
  if (bytes <= limit_bytes || axis == geometry.rank) return visit(window);

  // Along the slowest axis that is longer than 1 a cut keeps the order of the bytes.
  const std::uint64_t step_bytes = bytes / window.length[axis];
  const std::uint64_t most = std::max<std::uint64_t>(1, limit_bytes / step_bytes);
  const std::uint64_t end = window.start[axis] + window.length[axis];
  for (std::uint64_t at = window.start[axis]; at < end;) {
    std::uint64_t next = std::min(at + most, end);
    const std::uint64_t aligned = align_down(next, geometry.extent[axis]);
    if (next < end && aligned > at) next = aligned;
    geometry::Window part = window;
    part.start[axis] = at;
    part.length[axis] = next - at;
    MDFS_TRY(for_each_part(geometry, part, limit_bytes, visit));
    at = next;
  }
  return {};
}

namespace {

// `box` is set along the axes before `axis`.
Status visit_extents(const geometry::Geometry& geometry, const geometry::Window& window, unsigned axis,
                     geometry::Window& box, const std::function<Status(const geometry::Window&)>& visit) {
  if (axis == geometry.rank) return visit(box);
  const std::uint64_t end = window.start[axis] + window.length[axis];
  for (std::uint64_t at = window.start[axis]; at < end;) {
    const std::uint64_t next = std::min(end, (at / geometry.extent[axis] + 1) * geometry.extent[axis]);
    box.start[axis] = at;
    box.length[axis] = next - at;
    MDFS_TRY(visit_extents(geometry, window, axis + 1, box, visit));
    at = next;
  }
  return {};
}

}  // namespace

Status for_each_extent(const geometry::Geometry& geometry, const geometry::Window& window,
                       const std::function<Status(const geometry::Window&)>& visit) {
  geometry::Window box = window;
  return visit_extents(geometry, window, 0, box, visit);
}

imagefile::ArrayInfo array_of_cut(const geometry::Geometry& geometry, const geometry::CutPlane& plane) {
  imagefile::ArrayInfo array;
  array.type = geometry.type;
  array.lengths = {plane.cut.height, plane.cut.width};
  array.axes = "yx";
  if (geometry.channels > 1 && !plane.window.channel) {
    array.lengths.push_back(geometry.channels);
    array.axes += 'c';
  }
  return array;
}

imagefile::ArrayInfo array_of_window(const geometry::Geometry& geometry, const geometry::Window& window) {
  imagefile::ArrayInfo array;
  array.type = geometry.type;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    if (window.single[axis]) continue;
    array.lengths.push_back(window.length[axis]);
    array.axes += geometry.axes[axis];
  }
  if (geometry.channels > 1 && !window.channel) {
    array.lengths.push_back(geometry.channels);
    array.axes += 'c';
  }
  if (array.lengths.empty()) {
    array.lengths.push_back(1);
    array.axes.assign(1, 'x');
  }
  imagefile::set_resolution(array, geometry);
  return array;
}

}  // namespace mdfs::tools
