// Limits for the size of an image.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "geometry/geometry.h"

namespace mdfs::geometry {

// Largest canonical file along the slowest axis: whole slabs of at most kMaxImageBytes, and at most as many pages
// of the extent table as have numbers. The geometry must have passed check().
std::uint64_t max_bytes(const Geometry& geometry);

}  // namespace mdfs::geometry
