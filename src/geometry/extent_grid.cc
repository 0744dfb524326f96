// The arithmetic of the grid of extents.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/extent_grid.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"

namespace mdfs::geometry {

std::uint64_t extent_index(const ByteGeometry& geometry, const Coord& extent) {
  std::uint64_t index = extent[0];
  for (unsigned axis = 1; axis < geometry.rank; ++axis)
    index = index * ceil_div(geometry.shape[axis], geometry.extent[axis]) + extent[axis];
  return index;
}

Coord extent_coord(const ByteGeometry& geometry, std::uint64_t index) {
  Coord extent{};
  for (unsigned axis = geometry.rank; axis > 1; --axis) {
    const std::uint64_t count = ceil_div(geometry.shape[axis - 1], geometry.extent[axis - 1]);
    extent[axis - 1] = index % count;
    index /= count;
  }
  extent[0] = index;
  return extent;
}

std::uint64_t canonical_offset(const ByteGeometry& geometry, const Coord& extent, std::uint32_t byte) {
  Coord at{};
  std::uint64_t rest = byte;
  for (unsigned axis = geometry.rank; axis > 0; --axis) {
    at[axis - 1] = extent[axis - 1] * geometry.extent[axis - 1] + rest % geometry.extent[axis - 1];
    rest /= geometry.extent[axis - 1];
  }
  std::uint64_t offset = at[0];
  for (unsigned axis = 1; axis < geometry.rank; ++axis) offset = offset * geometry.shape[axis] + at[axis];
  return offset;
}

std::uint64_t bytes_inside(const ByteGeometry& geometry, const Coord& extent) {
  std::uint64_t bytes = 1;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    const std::uint64_t begin = extent[axis] * geometry.extent[axis];
    if (begin >= geometry.shape[axis]) return 0;
    bytes *= std::min(geometry.extent[axis], geometry.shape[axis] - begin);
  }
  return bytes;
}

std::uint32_t end_with_padding(const ByteGeometry& geometry, const Coord& extent, std::uint32_t end) {
  std::uint64_t step = 1;  // bytes of one step along the axis
  std::uint64_t reached = end;
  for (unsigned axis = geometry.rank; axis > 1; --axis) {
    const std::uint64_t side = geometry.extent[axis - 1];
    const std::uint64_t inside = std::min(side, geometry.shape[axis - 1] - extent[axis - 1] * side);
    const std::uint64_t begun = reached / (step * side) * step * side;
    if (reached - begun == inside * step) reached = begun + step * side;
    step *= side;
  }
  return static_cast<std::uint32_t>(reached);
}

std::uint64_t box_bytes(unsigned rank, const Box& box) {
  std::uint64_t bytes = 1;
  for (unsigned axis = 0; axis < rank; ++axis) bytes *= box.length[axis];
  return bytes;
}

bool overlap(unsigned rank, const Box& one, const Box& two) {
  for (unsigned axis = 0; axis < rank; ++axis)
    if (one.start[axis] >= two.start[axis] + two.length[axis] || two.start[axis] >= one.start[axis] + one.length[axis])
      return false;
  return true;
}

std::optional<Box> part_in_extent(const ByteGeometry& geometry, const Coord& extent, const Box& box) {
  Box part;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    const std::uint64_t side = geometry.extent[axis];
    const std::uint64_t begin = std::max(extent[axis] * side, box.start[axis]);
    const std::uint64_t end = std::min((extent[axis] + 1) * side, box.start[axis] + box.length[axis]);
    if (begin >= end) return std::nullopt;
    part.start[axis] = begin;
    part.length[axis] = end - begin;
  }
  return part;
}

namespace {

Coord steps_of(unsigned rank, const Coord& shape) {
  Coord step{};
  step[rank - 1] = 1;
  for (unsigned axis = rank - 1; axis > 0; --axis) step[axis - 1] = step[axis] * shape[axis];
  return step;
}

}  // namespace

std::vector<ByteRun> byte_runs(unsigned rank, const Coord& shape, const Box& box) {
  MDFS_CHECK(rank >= 1 && rank <= kMaxRank);
  std::vector<ByteRun> runs;
  for (unsigned axis = 0; axis < rank; ++axis)
    if (box.length[axis] == 0 && axis + 1 < rank) return runs;
  const Coord step = steps_of(rank, shape);
  Coord row{};
  do {
    std::uint64_t at = box.start[rank - 1];
    for (unsigned axis = 0; axis + 1 < rank; ++axis) at += (box.start[axis] + row[axis]) * step[axis];
    const auto begin = static_cast<std::uint32_t>(at);
    const auto end = static_cast<std::uint32_t>(at + box.length[rank - 1]);
    if (!runs.empty() && runs.back().end == begin)
      runs.back().end = end;
    else
      runs.push_back({begin, end});
  } while (step_in(rank - 1, {}, box.length, row));
  return runs;
}

std::vector<ByteRun> part_runs(unsigned rank, const Coord& shape, const Box& box, std::uint32_t part_bytes) {
  MDFS_CHECK(rank >= 1 && rank <= kMaxRank && part_bytes > 0);
  const Coord step = steps_of(rank, shape);
  // Along the axes from `dense` on, a row begins at most one part behind the row before: together they skip no part.
  unsigned dense = rank - 1;
  while (dense > 0 && step[dense - 1] <= part_bytes) --dense;
  std::uint64_t first = 0, last = 0;  // bytes of the box along those axes
  for (unsigned axis = dense; axis < rank; ++axis) {
    first += box.start[axis] * step[axis];
    last += (box.start[axis] + box.length[axis] - 1) * step[axis];
  }
  const std::uint64_t bytes = shape[0] * step[0];
  std::vector<ByteRun> runs;
  Coord row{};
  do {
    std::uint64_t at = 0;
    for (unsigned axis = 0; axis < dense; ++axis) at += (box.start[axis] + row[axis]) * step[axis];
    const auto begin = static_cast<std::uint32_t>(align_down(at + first, part_bytes));
    const auto end = static_cast<std::uint32_t>(std::min(align_down(at + last, part_bytes) + part_bytes, bytes));
    if (!runs.empty() && begin <= runs.back().end)
      runs.back().end = end;
    else
      runs.push_back({begin, end});
  } while (step_in(dense, {}, box.length, row));
  return runs;
}

}  // namespace mdfs::geometry
