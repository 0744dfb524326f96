// The samples from which a window of a level that is not stored is computed, and the bounds of such windows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "geometry/geometry.h"
#include "views/view_file.h"

namespace mdfs::views {

// Of levels that are not stored, a window that stands for more bytes of the level that it is made from is kTooBig: to
// read them would keep other users waiting for long.
inline constexpr std::uint64_t kMaxSourceBytes = 256u << 20;
// The same for one row of those bytes, so that the rows being reduced need little memory.
inline constexpr std::uint64_t kMaxSourceRowBytes = 4u << 20;

struct LevelSource {
  geometry::Window window;  // of the lower level
  std::uint64_t bytes = 0;
  std::uint64_t row_bytes = 0;  // a signal has rows of one sample

  bool is_in_bounds() const { return bytes <= kMaxSourceBytes && row_bytes <= kMaxSourceRowBytes; }
};
// The samples of `level` (0 is the image), at most that of the name, below a window that has been checked.
LevelSource level_source(const geometry::Geometry& image, const WindowName& name, unsigned level);

// True if the window's level is the image or stored, or can be computed from the coarsest of these below it.
bool is_in_bounds(const geometry::Geometry& image, unsigned stored_levels, const WindowName& name);
// The coarsest level whose windows of side x side samples of a plane are in bounds.
unsigned coarsest_level(const geometry::Geometry& image, unsigned stored_levels, std::uint64_t side);

}  // namespace mdfs::views
