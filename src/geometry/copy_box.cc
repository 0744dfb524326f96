// Copying boxes between arrays: the inner loop of every window.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/copy_box.h"

#include <array>
#include <cstring>

#include "base/check.h"
#include "base/checked.h"

namespace mdfs::geometry {
namespace {

// One side of a copy, padded in front to three axes.
struct Side {
  std::uint64_t offset = 0;             // of the box's first byte
  std::array<std::uint64_t, 2> step{};  // bytes from plane to plane, from row to row
};

// The box as planes x rows x bytes, with neighbours that lie together merged into longer rows.
struct Loops {
  std::uint64_t planes = 1, rows = 1, row_bytes = 1;
  bool empty = false;
};

// Checks that the box lies in the array and the array's touched part in the buffer.
Side locate(unsigned rank, const Coord& length, std::size_t buffer_bytes, const Coord& shape, const Coord& start) {
  MDFS_CHECK(rank >= 1 && rank <= kMaxRank);
  std::array<std::uint64_t, kMaxRank> stride{};
  std::uint64_t bytes = 1, last = 0;
  Side side;
  for (unsigned axis = rank; axis > 0; --axis) {
    const unsigned i = axis - 1;
    MDFS_CHECK(inside(start[i], length[i], shape[i]));
    stride[i] = bytes;
    // No product below can wrap: the last byte of the box is found with checked arithmetic.
    const auto first_here = checked_mul(start[i], bytes);
    const auto last_here = checked_mul(start[i] + length[i] - 1, bytes);
    MDFS_CHECK(first_here && last_here && checked_add(last, *last_here));
    side.offset += *first_here;
    last += *last_here;
    if (i > 0) {
      const auto next = checked_mul(bytes, shape[i]);
      MDFS_CHECK(next.has_value());
      bytes = *next;
    }
  }
  MDFS_CHECK(last < buffer_bytes);
  if (rank >= 2) side.step[1] = stride[rank - 2];
  if (rank >= 3) side.step[0] = stride[rank - 3];
  return side;
}

Loops loops_of(unsigned rank, const Coord& length) {
  Loops loops;
  for (unsigned axis = 0; axis < rank; ++axis) loops.empty = loops.empty || length[axis] == 0;
  loops.row_bytes = length[rank - 1];
  if (rank >= 2) loops.rows = length[rank - 2];
  if (rank >= 3) loops.planes = length[rank - 3];
  return loops;
}

// Merges axes that are contiguous on all sides given.
template <std::size_t N>
void merge(Loops& loops, std::array<Side*, N> sides) {
  const auto all = [&](auto condition) {
    for (Side* side : sides)
      if (!condition(*side)) return false;
    return true;
  };
  if (loops.rows == 1) {  // planes of one row each are rows
    for (Side* side : sides) side->step[1] = side->step[0];
    loops.rows = loops.planes;
    loops.planes = 1;
  }
  if (loops.rows > 1 && all([&](const Side& side) { return side.step[1] == loops.row_bytes; })) {
    loops.row_bytes *= loops.rows;
    loops.rows = loops.planes;
    loops.planes = 1;
    for (Side* side : sides) side->step[1] = side->step[0];
  }
  if (loops.planes > 1 && all([&](const Side& side) { return side.step[0] == loops.rows * side.step[1]; })) {
    loops.rows *= loops.planes;
    loops.planes = 1;
  }
  if (loops.planes == 1 && loops.rows > 1 && all([&](const Side& side) { return side.step[1] == loops.row_bytes; })) {
    loops.row_bytes *= loops.rows;
    loops.rows = 1;
  }
}

template <typename CopyRow>
void each_row(const Loops& loops, const std::byte* from, const Side& from_side, std::byte* to, const Side& to_side,
              CopyRow copy_row) {
  for (std::uint64_t plane = 0; plane < loops.planes; ++plane) {
    const std::byte* source = from + plane * from_side.step[0];
    std::byte* target = to + plane * to_side.step[0];
    for (std::uint64_t row = 0; row < loops.rows; ++row) {
      copy_row(target, source);
      source += from_side.step[1];
      target += to_side.step[1];
    }
  }
}

}  // namespace

void copy_box(unsigned rank, const Coord& length, ConstBytes from, const Coord& from_shape, const Coord& from_start,
              MutableBytes to, const Coord& to_shape, const Coord& to_start) {
  MDFS_CHECK(rank >= 1 && rank <= kMaxRank);
  Loops loops = loops_of(rank, length);
  if (loops.empty) return;
  Side source = locate(rank, length, from.size(), from_shape, from_start);
  Side target = locate(rank, length, to.size(), to_shape, to_start);
  merge<2>(loops, {&source, &target});
  const auto run = [&](auto copy_row) {
    each_row(loops, from.data() + source.offset, source, to.data() + target.offset, target, copy_row);
  };
  // Rows of one sample (planes across a volume) are copied by moves of a known size.
  switch (loops.row_bytes) {
    case 1:
      return run([](std::byte* t, const std::byte* s) { *t = *s; });
    case 2:
      return run([](std::byte* t, const std::byte* s) { std::memcpy(t, s, 2); });
    case 3:
      return run([](std::byte* t, const std::byte* s) { std::memcpy(t, s, 3); });
    case 4:
      return run([](std::byte* t, const std::byte* s) { std::memcpy(t, s, 4); });
    case 6:
      return run([](std::byte* t, const std::byte* s) { std::memcpy(t, s, 6); });
    case 8:
      return run([](std::byte* t, const std::byte* s) { std::memcpy(t, s, 8); });
    case 12:
      return run([](std::byte* t, const std::byte* s) { std::memcpy(t, s, 12); });
    case 16:
      return run([](std::byte* t, const std::byte* s) { std::memcpy(t, s, 16); });
    default:
      return run([n = loops.row_bytes](std::byte* t, const std::byte* s) { std::memcpy(t, s, n); });
  }
}

void fill_box(unsigned rank, const Coord& length, std::byte value, MutableBytes to, const Coord& to_shape,
              const Coord& to_start) {
  MDFS_CHECK(rank >= 1 && rank <= kMaxRank);
  Loops loops = loops_of(rank, length);
  if (loops.empty) return;
  Side target = locate(rank, length, to.size(), to_shape, to_start);
  merge<1>(loops, {&target});
  for (std::uint64_t plane = 0; plane < loops.planes; ++plane)
    for (std::uint64_t row = 0; row < loops.rows; ++row)
      std::memset(to.data() + target.offset + plane * target.step[0] + row * target.step[1], static_cast<int>(value),
                  loops.row_bytes);
}

void take_channel(ConstBytes samples, unsigned channels, unsigned channel, unsigned element_bytes, MutableBytes plane) {
  MDFS_CHECK(channel < channels && element_bytes > 0);
  const std::uint64_t count = plane.size() / element_bytes;
  MDFS_CHECK(plane.size() % element_bytes == 0 && samples.size() == plane.size() * channels);
  const Coord shape{count, std::uint64_t{channels} * element_bytes, 0};
  if (count == 0) return;
  copy_box(2, {count, element_bytes, 0}, samples, shape, {0, std::uint64_t{channel} * element_bytes, 0}, plane,
           {count, element_bytes, 0}, {});
}

void put_channel(ConstBytes plane, unsigned channels, unsigned channel, unsigned element_bytes, MutableBytes samples) {
  MDFS_CHECK(channel < channels && element_bytes > 0);
  const std::uint64_t count = plane.size() / element_bytes;
  MDFS_CHECK(plane.size() % element_bytes == 0 && samples.size() == plane.size() * channels);
  if (count == 0) return;
  copy_box(2, {count, element_bytes, 0}, plane, {count, element_bytes, 0}, {}, samples,
           {count, std::uint64_t{channels} * element_bytes, 0}, {0, std::uint64_t{channel} * element_bytes, 0});
}

}  // namespace mdfs::geometry
