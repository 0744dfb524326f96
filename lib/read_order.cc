// Runs of a window by rows of extents.
// SPDX-License-Identifier: Apache-2.0
#include "read_order.h"

#include <algorithm>
#include <vector>

namespace mdfs::client {
namespace {

struct Range {
  std::uint64_t from, to;  // in the window
};

class Walk {
 public:
  Walk(const CutWindow& window, const std::function<int(std::uint64_t, std::uint64_t)>& read)
      : window_(window), read_(read), rows_axis_(window.length.size() - 2), cell_(window.length.size()) {}

  // All cells of the grid of extents from this axis on.
  int cells(std::size_t axis) {
    if (axis > rows_axis_) return planes(0, 0);
    const std::uint64_t start = window_.start[axis], length = window_.length[axis], extent = window_.extent[axis];
    for (std::uint64_t at = 0; at < length;) {
      const std::uint64_t next = std::min(length, ((start + at) / extent + 1) * extent - start);
      cell_[axis] = {at, next};
      if (const int result = cells(axis + 1); result < 0) return result;
      at = next;
    }
    return 0;
  }

 private:
  // Within the cells: whole rows are contiguous, so the last two axes are one run.
  int planes(std::size_t axis, std::uint64_t before) {
    const Range& range = cell_[axis];
    const std::uint64_t length = window_.length[axis];
    if (axis == rows_axis_) {
      const std::uint64_t row = window_.length[axis + 1];
      return read_((before * length + range.from) * row, (range.to - range.from) * row);
    }
    for (std::uint64_t at = range.from; at < range.to; ++at)
      if (const int result = planes(axis + 1, before * length + at); result < 0) return result;
    return 0;
  }

  const CutWindow& window_;
  const std::function<int(std::uint64_t, std::uint64_t)>& read_;
  const std::size_t rows_axis_;
  std::vector<Range> cell_;
};

}  // namespace

std::uint64_t samples_between_visits(const CutWindow& window) {
  for (std::size_t axis = 0; axis + 2 < window.length.size(); ++axis) {
    std::uint64_t samples = std::min<std::uint64_t>(window.extent[axis], window.length[axis]);
    if (samples == 1) continue;
    for (std::size_t inner = axis + 1; inner < window.length.size(); ++inner) samples *= window.length[inner];
    return samples;
  }
  return 0;
}

int in_order_of_extents(const CutWindow& window, const std::function<int(std::uint64_t, std::uint64_t)>& read) {
  return Walk(window, read).cells(0);
}

}  // namespace mdfs::client
