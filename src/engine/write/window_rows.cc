// Rows of a box inside a window.
// SPDX-License-Identifier: Apache-2.0
#include "engine/write/window_rows.h"

#include <algorithm>

#include "geometry/copy_box.h"

namespace mdfs::engine {

WindowRows::WindowRows(const OpenObject& object, const geometry::Window& window, const geometry::Box& window_box,
                       const geometry::Box& box)
    : rank_(object.rank) {
  for (unsigned axis = 0; axis < rank_; ++axis) {
    const std::uint64_t by = axis + 1 == rank_ && window.channel ? object.image->channels : 1;
    whole_[axis] = window_box.length[axis] / by;
    first_[axis] = (box.start[axis] - window_box.start[axis]) / by;
    length_[axis] = box.length[axis] / by;
    if (axis + 1 < rank_) rows_ *= length_[axis];
  }
}

std::uint64_t WindowRows::offset(std::uint64_t row) const { return offset_in(whole_, first_, row); }

std::uint64_t WindowRows::offset_in(const geometry::Coord& shape, const geometry::Coord& start,
                                    std::uint64_t row) const {
  const unsigned fast = rank_ - 1;
  std::uint64_t offset = start[fast], step = shape[fast];
  for (unsigned axis = fast; axis > 0; --axis) {
    offset += (start[axis - 1] + row % length_[axis - 1]) * step;
    row /= length_[axis - 1];
    step *= shape[axis - 1];
  }
  return offset;
}

std::uint64_t WindowRows::joined_rows() const {
  if (rank_ == 1) return 1;
  return length_[rank_ - 1] == whole_[rank_ - 1] ? length_[rank_ - 2] : 1;
}

std::uint64_t WindowRows::written_bytes(const WindowSource& source) const {
  if (source.is_whole() || bytes() == 0) return bytes();
  const std::uint64_t begin = offset(0);
  const std::uint64_t end = offset(rows_ - 1) + row_bytes();
  const std::uint64_t around = source.written_bytes(begin, end);
  if (around == 0) return 0;
  if (around == end - begin) return bytes();
  std::uint64_t written = 0;
  for (std::uint64_t row = 0; row < rows_; ++row)
    written += source.written_bytes(offset(row), offset(row) + row_bytes());
  return written;
}

void copy_written(unsigned rank, const WindowSource& source, const WindowRows& rows, ConstBytes from,
                  const geometry::Coord& from_shape, const geometry::Coord& from_start, MutableBytes to,
                  const geometry::Coord& to_shape, const geometry::Coord& to_start) {
  if (rows.written_bytes(source) == rows.bytes())
    return geometry::copy_box(rank, rows.length(), from, from_shape, from_start, to, to_shape, to_start);
  for (std::uint64_t row = 0; row < rows.rows(); ++row) {
    const std::uint64_t first = rows.offset(row);
    const std::uint64_t from_row = rows.offset_in(from_shape, from_start, row);
    const std::uint64_t to_row = rows.offset_in(to_shape, to_start, row);
    const auto copy = [&](std::uint64_t begin, std::uint64_t end) -> Status {
      const ConstBytes bytes = from.subspan(from_row + begin - first, end - begin);
      std::copy(bytes.begin(), bytes.end(), to.subspan(to_row + begin - first, bytes.size()).begin());
      return {};
    };
    MDFS_CHECK(source.each_written(first, first + rows.row_bytes(), copy).ok());
  }
}

}  // namespace mdfs::engine
