// A box of which only a part has samples, and the layout of its bytes: what lies outside is zero.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::geometry {

// Samples without content on both sides of a window, along each axis.
struct Padding {
  Coord before{};
  Coord after{};

  bool is_empty() const { return *this == Padding{}; }
  bool operator==(const Padding&) const = default;
};
// The window that has the padding's samples as well: the same axes, longer, from 0 on.
Window padded(const Geometry& geometry, const Window& window, const Padding& padding);

// A row-major array, slowest axis first, the fastest axis in bytes. The part inside begins at `before`.
struct PaddedBox {
  unsigned rank = 0;
  Coord length{};
  Coord inside{};
  Coord before{};
  bool operator==(const PaddedBox&) const = default;
};
// Of the bytes of a window and its padding.
PaddedBox padded_box(const Geometry& geometry, const Window& window, const Padding& padding);
// An extent of which the window, from the start of each axis, lies in the image.
PaddedBox padded_extent(const Geometry& geometry, const Window& window);

// Bytes inside that follow one another in the box.
struct PaddedRun {
  std::uint64_t offset = 0;  // of the first of them in the box
  std::uint64_t bytes = 0;
};
// From byte `at` of those inside on; empty behind the last of them.
PaddedRun run_inside(const PaddedBox& box, std::uint64_t at);

// How many of the first `end` bytes of the box, at most all, lie inside.
std::uint64_t bytes_inside(const PaddedBox& box, std::uint64_t end);
// Fills `into`, bytes [offset, offset + into.size()) of the box. On call the last bytes_inside(end) -
// bytes_inside(offset) bytes of `into` are those inside, in order. They move to their places, and all others are zero.
void spread_padded(const PaddedBox& box, std::uint64_t offset, MutableBytes into);
// Both: reads bytes [offset, offset + into.size()) of the box. `read(first, bytes)` reads those inside, from their
// `first` byte on, and returns a Status.
template <typename Read>
Status read_padded(const PaddedBox& box, std::uint64_t offset, MutableBytes into, const Read& read) {
  const std::uint64_t first = bytes_inside(box, offset);
  const std::uint64_t count = bytes_inside(box, offset + into.size()) - first;
  if (count > 0) MDFS_TRY(read(first, into.last(static_cast<std::size_t>(count))));
  spread_padded(box, offset, into);
  return {};
}

}  // namespace mdfs::geometry
