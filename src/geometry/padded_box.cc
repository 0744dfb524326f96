// Counts and places the bytes inside a padded box.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/padded_box.h"

#include <algorithm>

#include "base/check.h"

namespace mdfs::geometry {

Window padded(const Geometry& geometry, const Window& window, const Padding& padding) {
  Window whole = window;
  whole.start = {};
  for (unsigned axis = 0; axis < geometry.rank; ++axis)
    whole.length[axis] += padding.before[axis] + padding.after[axis];
  return whole;
}

PaddedBox padded_box(const Geometry& geometry, const Window& window, const Padding& padding) {
  PaddedBox box{geometry.rank, padded(geometry, window, padding).length, window.length, padding.before};
  const unsigned last = geometry.rank - 1;
  const std::uint64_t sample = window.channel ? element_bytes(geometry.type) : geometry.sample_bytes();
  for (Coord* lengths : {&box.length, &box.inside, &box.before}) (*lengths)[last] *= sample;
  return box;
}

PaddedBox padded_extent(const Geometry& geometry, const Window& window) {
  Padding padding;
  for (unsigned axis = 0; axis < geometry.rank; ++axis)
    padding.after[axis] = geometry.extent[axis] - window.length[axis];
  return padded_box(geometry, window, padding);
}

PaddedRun run_inside(const PaddedBox& box, std::uint64_t at) {
  unsigned axis = box.rank;
  std::uint64_t joined = 1, step = 1;  // bytes of one step along `axis`: inside, and of the box
  do {
    --axis;
    joined *= box.inside[axis];
    step *= box.length[axis];
  } while (axis > 0 && box.inside[axis] == box.length[axis]);
  if (joined == 0) return {};
  PaddedRun run{at % joined + box.before[axis] * (step / box.length[axis]), joined - at % joined};
  std::uint64_t row = at / joined;
  while (axis-- > 0) {
    run.offset += (box.before[axis] + row % box.inside[axis]) * step;
    row /= box.inside[axis];
    step *= box.length[axis];
  }
  return row == 0 ? run : PaddedRun{};
}

std::uint64_t bytes_inside(const PaddedBox& box, std::uint64_t end) {
  std::uint64_t steps = 1, inside_step = 1;  // bytes of one step along an axis: of the box, and inside
  for (unsigned axis = 1; axis < box.rank; ++axis) {
    steps *= box.length[axis];
    inside_step *= box.inside[axis];
  }
  std::uint64_t count = 0;
  for (unsigned axis = 0; axis < box.rank; ++axis) {
    const std::uint64_t at = end / steps;
    if (at < box.before[axis]) break;
    const std::uint64_t passed = at - box.before[axis];
    count += std::min(passed, box.inside[axis]) * inside_step;
    if (passed >= box.inside[axis] || axis + 1 == box.rank) break;
    end %= steps;
    steps /= box.length[axis + 1];
    inside_step /= box.inside[axis + 1];
  }
  return count;
}

void spread_padded(const PaddedBox& box, std::uint64_t offset, MutableBytes into) {
  const std::uint64_t row = box.length[box.rank - 1], before = box.before[box.rank - 1];
  const std::uint64_t end = offset + into.size();
  std::uint64_t passed = bytes_inside(box, offset);
  auto from = into.end() - static_cast<std::ptrdiff_t>(bytes_inside(box, end) - passed);
  auto to = into.begin();
  // No byte is written before those in front of it have been read: as many bytes, or more, are left to write.
  for (std::uint64_t at = offset; at < end;) {
    if (from == into.end()) {
      std::fill(to, into.end(), std::byte{0});
      return;
    }
    const std::uint64_t in_row = at % row;
    const std::uint64_t next = std::min(end, at - in_row + row);
    const std::uint64_t until = bytes_inside(box, next);
    const std::uint64_t count = until - passed;
    passed = until;
    const std::uint64_t zeros = count == 0 ? next - at : in_row < before ? before - in_row : 0;
    to = std::fill_n(to, zeros, std::byte{0});
    MDFS_CHECK(to <= from);
    if (to != from) std::copy_n(from, count, to);
    from += static_cast<std::ptrdiff_t>(count);
    to += static_cast<std::ptrdiff_t>(count);
    to = std::fill_n(to, next - at - zeros - count, std::byte{0});
    at = next;
  }
  MDFS_CHECK(from == into.end());
}

}  // namespace mdfs::geometry
