// Boxes, pieces and byte ranges.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/decompose.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/checked.h"

namespace mdfs::geometry {
namespace {

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

}  // namespace

bool step_in(unsigned rank, const Coord& first, const Coord& last, Coord& index) {
  for (unsigned axis = rank; axis > 0; --axis) {
    if (++index[axis - 1] < last[axis - 1]) return true;
    index[axis - 1] = first[axis - 1];
  }
  return false;
}

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
  while (step_in(geometry.rank, span.first, span.last, index));
  return pieces;
}

std::vector<RangeBox> range_boxes(unsigned rank, const Coord& shape, std::uint64_t offset, std::uint64_t length) {
  MDFS_CHECK(rank >= 1 && rank <= kMaxRank);
  MDFS_CHECK(checked_add(offset, length).has_value());
  RangeCutter cutter(rank, shape);
  cutter.cut(0, Coord{}, offset, length);
  return cutter.take();
}

}  // namespace mdfs::geometry
