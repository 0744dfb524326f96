// Copying boxes between arrays: the inner loop of every window.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/copy_box.h"

#include <array>
#include <cstring>

#include "base/check.h"
#include "base/checked.h"

namespace mdfs::geometry {
namespace {

// One side of a copy.
struct Side {
  std::uint64_t offset = 0;  // of the box's first byte
  Coord step{};              // bytes from one index to the next, by axis
};

// The box as loops over rows of bytes, fastest first. Axes that lie together on all sides are one loop.
struct Loops {
  struct Loop {
    std::uint64_t count = 1;
    std::array<std::uint64_t, 2> step{};  // bytes on each side
  };
  std::array<Loop, kMaxRank - 1> loop{};
  std::uint64_t row_bytes = 1;
};

bool is_empty(unsigned rank, const Coord& length) {
  for (unsigned axis = 0; axis < rank; ++axis)
    if (length[axis] == 0) return true;
  return false;
}

// Checks that the box lies in the array and the array's touched part in the buffer.
Side locate(unsigned rank, const Coord& length, std::size_t buffer_bytes, const Coord& shape, const Coord& start) {
  MDFS_CHECK(rank >= 1 && rank <= kMaxRank);
  std::uint64_t bytes = 1, last = 0;
  Side side;
  for (unsigned axis = rank; axis > 0; --axis) {
    const unsigned i = axis - 1;
    MDFS_CHECK(inside(start[i], length[i], shape[i]));
    side.step[i] = bytes;
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
  return side;
}

Loops loops_of(unsigned rank, const Coord& length, const Side& source, const Side& target) {
  Loops loops;
  loops.row_bytes = length[rank - 1];
  std::size_t count = 0;
  for (unsigned axis = rank - 1; axis > 0; --axis) {
    const unsigned i = axis - 1;
    if (length[i] == 1) continue;
    if (count == 0 && source.step[i] == loops.row_bytes && target.step[i] == loops.row_bytes) {
      loops.row_bytes *= length[i];
      continue;
    }
    if (count > 0) {
      Loops::Loop& inner = loops.loop[count - 1];
      if (source.step[i] == inner.count * inner.step[0] && target.step[i] == inner.count * inner.step[1]) {
        inner.count *= length[i];
        continue;
      }
    }
    loops.loop[count++] = {length[i], {source.step[i], target.step[i]}};
  }
  return loops;
}

// Calls copy_row(target, source) for each row of bytes.
template <typename CopyRow>
void each_row(const Loops& loops, const std::byte* from, std::byte* to, CopyRow copy_row) {
  const auto& [rows, planes, blocks, outer] = loops.loop;
  for (std::uint64_t i = 0; i < outer.count; ++i)
    for (std::uint64_t block = 0; block < blocks.count; ++block) {
      const std::byte* const block_source = from + i * outer.step[0] + block * blocks.step[0];
      std::byte* const block_target = to + i * outer.step[1] + block * blocks.step[1];
      for (std::uint64_t plane = 0; plane < planes.count; ++plane) {
        const std::byte* source = block_source + plane * planes.step[0];
        std::byte* target = block_target + plane * planes.step[1];
        for (std::uint64_t row = 0; row < rows.count; ++row) {
          copy_row(target, source);
          source += rows.step[0];
          target += rows.step[1];
        }
      }
    }
}

}  // namespace

void copy_box(unsigned rank, const Coord& length, ConstBytes from, const Coord& from_shape, const Coord& from_start,
              MutableBytes to, const Coord& to_shape, const Coord& to_start) {
  MDFS_CHECK(rank >= 1 && rank <= kMaxRank);
  if (is_empty(rank, length)) return;
  const Side source = locate(rank, length, from.size(), from_shape, from_start);
  const Side target = locate(rank, length, to.size(), to_shape, to_start);
  const Loops loops = loops_of(rank, length, source, target);
  const auto run = [&](auto copy_row) {
    each_row(loops, from.data() + source.offset, to.data() + target.offset, copy_row);
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
  if (is_empty(rank, length)) return;
  const Side target = locate(rank, length, to.size(), to_shape, to_start);
  const Loops loops = loops_of(rank, length, target, target);
  std::byte* const first = to.data() + target.offset;
  each_row(loops, first, first,
           [&](std::byte* row, const std::byte*) { std::memset(row, static_cast<int>(value), loops.row_bytes); });
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
