// How large an image may become.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "geometry/geometry.h"

namespace mdfs::geometry {

// How far the canonical file may grow along its slowest axis: whole slabs of at most kMaxImageBytes, and no more pages
// of the extent table than can be numbered. Of a geometry that has passed check().
std::uint64_t max_bytes(const Geometry& geometry);

}  // namespace mdfs::geometry
