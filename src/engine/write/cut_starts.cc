// Offsets at which rows of extents, steps of an axis, and extents begin.
// SPDX-License-Identifier: Apache-2.0
#include "engine/write/cut_starts.h"

#include "base/checked.h"

namespace mdfs::engine {

std::vector<CutStarts> cut_starts(const geometry::ByteGeometry& array, std::uint64_t old_size, std::uint64_t size_bytes,
                                  std::uint64_t most) {
  const unsigned fast = array.rank - 1;
  const std::uint64_t last = old_size - 1;
  std::vector<CutStarts> found;
  std::uint64_t begin = 0;  // of what the parts divide
  const auto add = [&](std::uint64_t parts, std::uint64_t bytes) {
    const auto distance = checked_mul(parts, bytes);
    if (!distance || *distance > last - begin) {  // the only part begins where the whole does
      if (begin >= size_bytes) found.push_back({begin, 1, 1});
      return;
    }
    const std::uint64_t skipped = size_bytes > begin ? ceil_div(size_bytes - begin, *distance) : 0;
    const std::uint64_t parts_begun = (last - begin) / *distance + 1;
    if (skipped < parts_begun) found.push_back({begin + skipped * *distance, *distance, parts_begun - skipped});
  };
  std::uint64_t step = 1;  // bytes of one step of an axis
  for (unsigned axis = 1; axis <= fast; ++axis) step *= array.shape[axis];
  for (unsigned axis = 0; axis < fast; ++axis) {
    if (axis > 0) step /= array.shape[axis];
    add(array.extent[axis], step);
    add(1, step);
    begin += align_down(last - begin, step);
  }
  add(most, array.extent[fast]);
  add(1, array.extent[fast]);
  return found;
}

}  // namespace mdfs::engine
