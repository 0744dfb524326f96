// Parses and prints cuts: "cut,10.5,0,20,1,0,0,0,0.7,0.7,400,300", "cut,..,near,l1,t3,c0".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "geometry/cut.h"
#include "geometry/geometry.h"

namespace mdfs::geometry {

// A cut through a resolution level, in the samples of that level.
struct LevelCut {
  unsigned level = 0;
  CutPlane plane;
};

// True if the specification is one of a cut, perhaps a malformed one.
bool is_cut(std::string_view spec);
// "cut", the origin, u and v (each along x, y, z), the width and the height; then in any order "near", a level, one
// index along each axis other than x, y and z, and a channel. Numbers are decimal: a sign, digits, a point, digits; at
// most 17 digits count, which is what tells any two f64 apart. kInvalidArgument, kOutOfRange, kOverflow and kTooBig
// name the problem.
Result<LevelCut> parse_cut(const Geometry& image, std::string_view spec);
// The canonical spelling; equal for equal cuts.
std::string to_spec(const Geometry& image, const LevelCut& cut);

}  // namespace mdfs::geometry
