// Parses and prints window specifications: "y50+30,x100+40", "z10", "100,50,40,30" (x,y,w,h), "t7,c1".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "geometry/geometry.h"

namespace mdfs::geometry {

// Parses a specification of at most 255 bytes for this geometry, which has passed check(). kInvalidArgument,
// kOutOfRange and kOverflow name the problem: unknown axis, axis twice, outside the image, zero length, number too
// large, a pyramid level that does not exist.
Result<Window> parse_window(const Geometry& geometry, std::string_view spec);
// The canonical spelling: axes in order, whole axes left out; "all" for the whole image.
std::string to_spec(const Geometry& geometry, const Window& window);

}  // namespace mdfs::geometry
