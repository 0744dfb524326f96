// Boxes, pieces and byte ranges.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/decompose.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/checked.h"

namespace mdfs::geometry {
namespace {

constexpr unsigned kMaxPagePlaces = 64;
constexpr std::uint32_t kPageBytes = 4096;

std::uint64_t box_end(const Box& box, unsigned axis) {
  const auto end = checked_add(box.start[axis], box.length[axis]);
  MDFS_CHECK(end.has_value());
  return *end;
}

bool is_empty(unsigned rank, const Box& box) {
  return std::any_of(box.length.begin(), box.length.begin() + rank, [](std::uint64_t n) { return n == 0; });
}

// First and one past the last extent under the box.
struct ExtentSpan {
  Coord first{};
  Coord last{};
};

ExtentSpan extents_under(const ByteGeometry& geometry, const Box& box) {
  ExtentSpan span;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    span.first[axis] = box.start[axis] / geometry.extent[axis];
    span.last[axis] = ceil_div(box_end(box, axis), geometry.extent[axis]);
  }
  return span;
}

// Steps an index through [first, last) in row-major order; false after the last.
bool next(unsigned rank, const ExtentSpan& span, Coord& index) {
  for (unsigned axis = rank; axis > 0; --axis) {
    if (++index[axis - 1] < span.last[axis - 1]) return true;
    index[axis - 1] = span.first[axis - 1];
  }
  return false;
}

Piece piece_of(const ByteGeometry& geometry, const Box& box, const Coord& extent) {
  Piece piece;
  piece.extent = extent;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    const std::uint64_t origin = extent[axis] * geometry.extent[axis];
    const std::uint64_t low = std::max(box.start[axis], origin);
    // The extent's own end may lie beyond 2^64 only if the box's does, which box_end refused.
    const std::uint64_t room = geometry.extent[axis] - (low - origin);
    const std::uint64_t high = std::min(box_end(box, axis), checked_add(low, room).value_or(box_end(box, axis)));
    piece.in_extent.start[axis] = low - origin;
    piece.in_extent.length[axis] = high - low;
    piece.in_box[axis] = low - box.start[axis];
  }
  return piece;
}

class RangeCutter {
 public:
  RangeCutter(unsigned rank, const Coord& shape) : rank_(rank) {
    stride_[rank - 1] = 1;
    for (unsigned axis = rank - 1; axis > 0; --axis) {
      MDFS_CHECK(shape[axis] > 0);
      const auto stride = checked_mul(stride_[axis], shape[axis]);
      MDFS_CHECK(stride.has_value());
      stride_[axis - 1] = *stride;
      full_[axis] = shape[axis];
    }
  }

  // Cuts [offset, offset + length) of the sub-array whose slower indices are `origin`.
  void cut(unsigned axis, Coord origin, std::uint64_t offset, std::uint64_t length) {
    if (length == 0) return;
    const std::uint64_t stride = stride_[axis];
    if (axis + 1 == rank_) return emit(axis, origin, offset, length);
    const std::uint64_t head_at = offset % stride;
    if (head_at != 0 || length < stride) {
      const std::uint64_t head = std::min(length, stride - head_at);
      origin[axis] = offset / stride;
      cut(axis + 1, origin, head_at, head);
      offset += head;
      length -= head;
    }
    if (const std::uint64_t steps = length / stride; steps > 0) {
      emit(axis, origin, offset / stride, steps);
      offset += steps * stride;
      length -= steps * stride;
    }
    origin[axis] = offset / stride;
    cut(axis + 1, origin, 0, length);
  }

  std::vector<RangeBox> take() { return std::move(boxes_); }

 private:
  void emit(unsigned axis, const Coord& origin, std::uint64_t first, std::uint64_t count) {
    MDFS_CHECK(axis < kMaxRank);
    RangeBox range{{}, done_};
    for (unsigned i = 0; i < axis; ++i) {
      range.box.start[i] = origin[i];
      range.box.length[i] = 1;
    }
    range.box.start[axis] = first;
    range.box.length[axis] = count;
    for (unsigned i = axis + 1; i < rank_; ++i) range.box.length[i] = full_[i];
    boxes_.push_back(range);
    done_ += count * stride_[axis];
  }

  unsigned rank_;
  Coord stride_{};
  Coord full_{};
  std::uint64_t done_ = 0;
  std::vector<RangeBox> boxes_;
};

Coord page_grid(unsigned rank, const Coord& grid, const PageBox& box) {
  Coord pages{};
  for (unsigned axis = 0; axis < rank; ++axis)
    pages[axis] = std::max<std::uint64_t>(1, ceil_div(grid[axis], box.side[axis]));
  return pages;
}

}  // namespace

Coord ByteGeometry::grid() const {
  Coord result{};
  for (unsigned axis = 0; axis < rank; ++axis) result[axis] = ceil_div(shape[axis], extent[axis]);
  return result;
}

std::uint64_t ByteGeometry::extent_bytes() const {
  std::uint64_t bytes = 1;
  for (unsigned axis = 0; axis < rank; ++axis) bytes *= extent[axis];
  return bytes;
}

ByteGeometry byte_geometry(const Geometry& geometry) {
  MDFS_CHECK(geometry.rank >= 1 && geometry.rank <= kMaxRank);
  ByteGeometry result;
  result.rank = geometry.rank;
  std::copy_n(geometry.shape.begin(), geometry.rank, result.shape.begin());
  std::copy_n(geometry.extent.begin(), geometry.rank, result.extent.begin());
  result.shape[geometry.rank - 1] *= geometry.sample_bytes();
  result.extent[geometry.rank - 1] *= geometry.sample_bytes();
  return result;
}

Box byte_box(const Geometry& geometry, const Window& window) {
  MDFS_CHECK(geometry.rank >= 1 && geometry.rank <= kMaxRank);
  Box box;
  std::copy_n(window.start.begin(), geometry.rank, box.start.begin());
  std::copy_n(window.length.begin(), geometry.rank, box.length.begin());
  box.start[geometry.rank - 1] *= geometry.sample_bytes();
  box.length[geometry.rank - 1] *= geometry.sample_bytes();
  return box;
}

std::uint64_t piece_count(const ByteGeometry& geometry, const Box& box) {
  if (is_empty(geometry.rank, box)) return 0;
  const ExtentSpan span = extents_under(geometry, box);
  std::uint64_t count = 1;
  for (unsigned axis = 0; axis < geometry.rank; ++axis)
    count = checked_mul(count, span.last[axis] - span.first[axis]).value_or(std::numeric_limits<std::uint64_t>::max());
  return count;
}

std::vector<Piece> decompose(const ByteGeometry& geometry, const Box& box) {
  std::vector<Piece> pieces;
  if (is_empty(geometry.rank, box)) return pieces;
  pieces.reserve(piece_count(geometry, box));
  const ExtentSpan span = extents_under(geometry, box);
  Coord index = span.first;
  do pieces.push_back(piece_of(geometry, box, index));
  while (next(geometry.rank, span, index));
  return pieces;
}

std::vector<RangeBox> range_boxes(unsigned rank, const Coord& shape, std::uint64_t offset, std::uint64_t length) {
  MDFS_CHECK(rank >= 1 && rank <= kMaxRank);
  MDFS_CHECK(checked_add(offset, length).has_value());
  RangeCutter cutter(rank, shape);
  cutter.cut(0, Coord{}, offset, length);
  return cutter.take();
}

std::vector<bool> touched_sub_blocks(const ByteGeometry& geometry, const Box& in_extent, std::uint64_t sub_block) {
  MDFS_CHECK(sub_block > 0 && geometry.rank >= 1 && geometry.rank <= kMaxRank);
  std::vector<bool> touched(ceil_div(geometry.extent_bytes(), sub_block), false);
  if (is_empty(geometry.rank, in_extent)) return touched;
  for (unsigned axis = 0; axis < geometry.rank; ++axis)
    MDFS_CHECK(inside(in_extent.start[axis], in_extent.length[axis], geometry.extent[axis]));

  // Padded in front to three axes, so that the rows are two plain loops.
  Coord extent{1, 1, 1}, start{}, length{1, 1, 1};
  const unsigned pad = kMaxRank - geometry.rank;
  std::copy_n(geometry.extent.begin(), geometry.rank, extent.begin() + pad);
  std::copy_n(in_extent.start.begin(), geometry.rank, start.begin() + pad);
  std::copy_n(in_extent.length.begin(), geometry.rank, length.begin() + pad);
  std::uint64_t marked = 0;  // sub-blocks below are done; rows come in ascending order
  for (std::uint64_t z = start[0]; z < start[0] + length[0]; ++z)
    for (std::uint64_t y = start[1]; y < start[1] + length[1]; ++y) {
      const std::uint64_t row = (z * extent[1] + y) * extent[2] + start[2];
      const std::uint64_t last = (row + length[2] - 1) / sub_block;
      for (std::uint64_t i = std::max(marked, row / sub_block); i <= last; ++i) touched[i] = true;
      marked = last + 1;
    }
  return touched;
}

PageBox page_box(unsigned rank, std::uint32_t record_bytes) {
  MDFS_CHECK(rank >= 1 && rank <= kMaxRank && record_bytes > 0);
  PageBox box;
  box.places = kMaxPagePlaces;
  while (box.places > 1 && std::uint64_t{box.places} * record_bytes > kPageBytes) box.places /= 2;
  const auto bits = static_cast<unsigned>(std::countr_zero(box.places));
  for (unsigned axis = 0; axis < rank; ++axis) {
    const unsigned extra = rank - 1 - axis < bits % rank ? 1 : 0;  // the fastest axes take the rest
    box.side[axis] = std::uint64_t{1} << (bits / rank + extra);
  }
  return box;
}

PagePlace page_place(unsigned rank, const Coord& grid, const PageBox& box, const Coord& extent) {
  const Coord pages = page_grid(rank, grid, box);
  PagePlace result;
  std::uint64_t place = 0;
  for (unsigned axis = 0; axis < rank; ++axis) {
    MDFS_CHECK(axis == 0 || extent[axis] < grid[axis]);
    result.page = result.page * pages[axis] + extent[axis] / box.side[axis];
    place = place * box.side[axis] + extent[axis] % box.side[axis];
  }
  result.place = static_cast<unsigned>(place);
  return result;
}

Coord page_origin(unsigned rank, const Coord& grid, const PageBox& box, std::uint64_t page) {
  const Coord pages = page_grid(rank, grid, box);
  Coord origin{};
  for (unsigned axis = rank; axis > 1; --axis) {
    origin[axis - 1] = page % pages[axis - 1] * box.side[axis - 1];
    page /= pages[axis - 1];
  }
  origin[0] = page * box.side[0];
  return origin;
}

}  // namespace mdfs::geometry
