// Rows of a box inside a window: their offsets in the window's canonical layout, and their bytes that are written.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/open_object.h"
#include "engine/write/window_source.h"
#include "geometry/geometry.h"

namespace mdfs::engine {

// One window of one image. Boxes count bytes along the fastest axis, as byte_box() gives them. Lengths here count the
// window's own bytes, which are fewer for a window of one channel. Rows are numbered in row-major order of the box.
class WindowRows {
 public:
  // `box` lies inside `window_box`, the box of `window`.
  WindowRows(const OpenObject& object, const geometry::Window& window, const geometry::Box& window_box,
             const geometry::Box& box);

  // Of the box, in all its axes.
  const geometry::Coord& length() const { return length_; }
  std::uint64_t rows() const { return rows_; }
  std::uint64_t row_bytes() const { return length_[rank_ - 1]; }
  // Of a row's first byte in the window's canonical layout.
  std::uint64_t offset(std::uint64_t row) const;
  // Of a row's first byte in a row-major array of `shape`, where the box begins at `start`.
  std::uint64_t offset_in(const geometry::Coord& shape, const geometry::Coord& start, std::uint64_t row) const;
  // So many rows from a multiple of it on follow each other in the window: the box is as wide as the window.
  std::uint64_t joined_rows() const;

  // Bytes of the box that the source writes.
  std::uint64_t written_bytes(const WindowSource& source) const;
  std::uint64_t bytes() const { return rows_ * row_bytes(); }

 private:
  const unsigned rank_;
  std::uint64_t rows_ = 1;
  geometry::Coord whole_{};  // of the window
  geometry::Coord first_{};  // of the box in the window
  geometry::Coord length_{};
};

// copy_box() of the bytes of `rows` that the source writes; the boxes hold the rows' own bytes.
void copy_written(unsigned rank, const WindowSource& source, const WindowRows& rows, ConstBytes from,
                  const geometry::Coord& from_shape, const geometry::Coord& from_start, MutableBytes to,
                  const geometry::Coord& to_shape, const geometry::Coord& to_start);

}  // namespace mdfs::engine
