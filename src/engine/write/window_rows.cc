// Rows of a box inside a window.
// SPDX-License-Identifier: Apache-2.0
#include "engine/write/window_rows.h"

#include <algorithm>

#include "geometry/copy_box.h"

namespace mdfs::engine {

WindowRows::WindowRows(const OpenObject& object, const geometry::Window& window, const geometry::Box& window_box,
                       const geometry::Box& box) {
  const unsigned pad = geometry::kMaxRank - object.rank;
  for (unsigned axis = 0; axis < object.rank; ++axis) {
    const std::uint64_t by = axis + 1 == object.rank && window.channel ? object.image->channels : 1;
    whole_[axis + pad] = window_box.length[axis] / by;
    first_[axis + pad] = (box.start[axis] - window_box.start[axis]) / by;
    length_[axis + pad] = box.length[axis] / by;
  }
}

std::uint64_t WindowRows::written_bytes(const WindowSource& source) const {
  if (source.is_whole()) return bytes();
  const std::uint64_t begin = offset(0, 0);
  const std::uint64_t end = offset(length_[0] - 1, length_[1] - 1) + length_[2];
  const std::uint64_t around = source.written_bytes(begin, end);
  if (around == 0) return 0;
  if (around == end - begin) return bytes();
  std::uint64_t written = 0;
  for (std::uint64_t z = 0; z < length_[0]; ++z)
    for (std::uint64_t y = 0; y < length_[1]; ++y)
      written += source.written_bytes(offset(z, y), offset(z, y) + length_[2]);
  return written;
}

namespace {

// A box's place in a row-major array, padded in front to three axes.
class Place {
 public:
  Place(unsigned rank, const geometry::Coord& shape, const geometry::Coord& start) {
    const unsigned pad = geometry::kMaxRank - rank;
    std::copy_n(shape.begin(), rank, shape_.begin() + pad);
    std::copy_n(start.begin(), rank, start_.begin() + pad);
  }
  std::uint64_t of_row(std::uint64_t z, std::uint64_t y) const {
    return ((start_[0] + z) * shape_[1] + start_[1] + y) * shape_[2] + start_[2];
  }

 private:
  geometry::Coord shape_{1, 1, 1};
  geometry::Coord start_{};
};

}  // namespace

void copy_written(unsigned rank, const WindowSource& source, const WindowRows& rows, ConstBytes from,
                  const geometry::Coord& from_shape, const geometry::Coord& from_start, MutableBytes to,
                  const geometry::Coord& to_shape, const geometry::Coord& to_start) {
  const geometry::Coord& length = rows.length();
  if (rows.written_bytes(source) == rows.bytes()) {
    geometry::Coord box{};
    std::copy(length.end() - rank, length.end(), box.begin());
    return geometry::copy_box(rank, box, from, from_shape, from_start, to, to_shape, to_start);
  }
  const Place from_place(rank, from_shape, from_start), to_place(rank, to_shape, to_start);
  for (std::uint64_t z = 0; z < length[0]; ++z)
    for (std::uint64_t y = 0; y < length[1]; ++y) {
      const std::uint64_t row = rows.offset(z, y);
      const auto copy = [&](std::uint64_t begin, std::uint64_t end) -> Status {
        const ConstBytes bytes = from.subspan(from_place.of_row(z, y) + begin - row, end - begin);
        std::copy(bytes.begin(), bytes.end(), to.subspan(to_place.of_row(z, y) + begin - row, bytes.size()).begin());
        return {};
      };
      MDFS_CHECK(source.each_written(row, row + length[2], copy).ok());
    }
}

}  // namespace mdfs::engine
