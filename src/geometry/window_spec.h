// Parses and prints window specifications: "y50+30,x100+40", "z10", "100,50,40,30" (x,y,w,h), "t7,c1",
// "y-5+20,clip".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "geometry/geometry.h"
#include "geometry/padded_box.h"

namespace mdfs::geometry {

inline constexpr std::size_t kMaxSpecBytes = 255;  // a name of a directory entry

// The letter c is the axis of that name if the image has one, else it selects an interleaved channel.
// Parses a specification of at most 255 bytes for this geometry, which has passed check(). kInvalidArgument,
// kOutOfRange and kOverflow name the problem: unknown axis, axis twice, outside the image, zero length, number too
// large, a level other than 0, samples outside in spite of "clip".
Result<Window> parse_window(const Geometry& geometry, std::string_view spec);

// A window of a resolution level, in the samples of that level (geometry/level.h).
struct LevelWindow {
  unsigned level = 0;
  Window window;  // the part inside
  Padding padding{};
};
// The same, with an item "l2" for level 2. Level 0, the image itself, is the level if none is given. With an item
// "clip" an axis with a length may begin before the image, "y-5+20", and end behind it, as long as a sample is inside.
// The padded window has at most kMaxImageBytes: else kTooBig.
Result<LevelWindow> parse_level_window(const Geometry& image, std::string_view spec);
// The canonical spelling: axes in order, whole axes left out; "all" for the whole image.
std::string to_spec(const Geometry& geometry, const Window& window);
// The same for a window of a level: "l2,y0+512". With padding: "y-5+20,clip".
std::string to_spec(const Geometry& image, const LevelWindow& window);

}  // namespace mdfs::geometry
