// Windows below windows of levels.
// SPDX-License-Identifier: Apache-2.0
#include "views/level_source.h"

#include <algorithm>

#include "base/check.h"
#include "geometry/level.h"

namespace mdfs::views {

using geometry::Geometry;

LevelSource level_source(const Geometry& image, const WindowName& name, unsigned level) {
  MDFS_CHECK(level <= name.level);
  LevelSource source;
  source.window = name.window;
  for (unsigned n = name.level; n-- > level;)
    source.window = geometry::source_window(geometry::level_geometry(image, n), source.window);
  const std::uint64_t sample = geometry::element_bytes(image.type) * (name.window.channel ? 1 : image.channels);
  source.row_bytes = (image.rank == 1 ? 1 : source.window.length[image.rank - 1]) * sample;
  source.bytes = geometry::window_bytes(geometry::level_geometry(image, level), source.window);
  return source;
}

bool is_in_bounds(const Geometry& image, unsigned stored_levels, const WindowName& name) {
  return name.level <= stored_levels || level_source(image, name, stored_levels).is_in_bounds();
}

unsigned coarsest_level(const Geometry& image, unsigned stored_levels, std::uint64_t side) {
  unsigned level = std::min(stored_levels, geometry::level_count(image));
  for (const unsigned most = geometry::level_count(image); level < most; ++level) {
    const Geometry above = geometry::level_geometry(image, level + 1);
    WindowName tile{.window = {}, .format = Format::kRaw, .level = level + 1};
    for (unsigned axis = 0; axis < above.rank; ++axis)
      tile.window.length[axis] = axis + 2 < above.rank ? 1 : std::min(side, above.shape[axis]);
    if (!is_in_bounds(image, stored_levels, tile)) break;
  }
  return level;
}

}  // namespace mdfs::views
