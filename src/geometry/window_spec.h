// Parses and prints window specifications: "y50+30,x100+40", "z10", "100,50,40,30" (x,y,w,h), "t7,c1".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "geometry/geometry.h"

namespace mdfs::geometry {

// The letter c is the axis of that name if the image has one, else it selects an interleaved channel.
// Parses a specification of at most 255 bytes for this geometry, which has passed check(). kInvalidArgument,
// kOutOfRange and kOverflow name the problem: unknown axis, axis twice, outside the image, zero length, number too
// large, a level other than 0.
Result<Window> parse_window(const Geometry& geometry, std::string_view spec);

// A window of a resolution level, in the samples of that level (geometry/level.h).
struct LevelWindow {
  unsigned level = 0;
  Window window;
};
// The same, with an item "l2" for level 2. Level 0, the image itself, is the level if none is given.
Result<LevelWindow> parse_level_window(const Geometry& image, std::string_view spec);
// The canonical spelling: axes in order, whole axes left out; "all" for the whole image.
std::string to_spec(const Geometry& geometry, const Window& window);
// The same for a window of a level: "l2,y0+512".
std::string to_spec(const Geometry& image, const LevelWindow& window);

}  // namespace mdfs::geometry
