// Rows of a box inside a window: their offsets in the window's canonical layout, and their bytes that are written.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/open_object.h"
#include "engine/write/window_source.h"
#include "geometry/geometry.h"

namespace mdfs::engine {

// One window of one image. Boxes count bytes along the fastest axis, as byte_box() gives them. Lengths here count the
// window's own bytes, which are fewer for a window of one channel. Axes are padded in front to three.
class WindowRows {
 public:
  // `box` lies inside `window_box`, the box of `window`.
  WindowRows(const OpenObject& object, const geometry::Window& window, const geometry::Box& window_box,
             const geometry::Box& box);

  const geometry::Coord& length() const { return length_; }
  // Of a row's first byte in the window's canonical layout.
  std::uint64_t offset(std::uint64_t z, std::uint64_t y) const {
    return ((first_[0] + z) * whole_[1] + first_[1] + y) * whole_[2] + first_[2];
  }
  // The box is as wide as the window: rows of one z follow each other.
  bool is_full_width() const { return length_[2] == whole_[2]; }

  // Bytes of the box that the source writes.
  std::uint64_t written_bytes(const WindowSource& source) const;
  std::uint64_t bytes() const { return length_[0] * length_[1] * length_[2]; }

 private:
  geometry::Coord whole_{1, 1, 1};  // of the window
  geometry::Coord first_{};         // of the box in the window
  geometry::Coord length_{1, 1, 1};
};

// copy_box() of the bytes of `rows` that the source writes; the boxes hold the rows' own bytes.
void copy_written(unsigned rank, const WindowSource& source, const WindowRows& rows, ConstBytes from,
                  const geometry::Coord& from_shape, const geometry::Coord& from_start, MutableBytes to,
                  const geometry::Coord& to_shape, const geometry::Coord& to_start);

}  // namespace mdfs::engine
