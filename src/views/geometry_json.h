// The attribute user.mdfs.geometry: the geometry of an image as text, which archives preserve and restore.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::views {

inline constexpr std::string_view kGeometryAttribute = "user.mdfs.geometry";

struct SizedGeometry {
  geometry::Geometry geometry;
  std::uint64_t size_bytes = 0;  // of the file; the last step along the slowest axis may be incomplete
  bool operator==(const SizedGeometry&) const = default;
};

// One JSON object without line breaks; arrays slowest axis first. shape, type and size_bytes are always present.
std::string geometry_json(const SizedGeometry& sized);
// Parses the text of geometry_json() or of a user. Only shape and type are required: extents, names of axes
// and size have the defaults of `mdfs image create`. Unknown keys are skipped. kInvalidArgument names the
// field. The geometry has passed geometry::check().
Result<SizedGeometry> parse_geometry_json(std::string_view text);

}  // namespace mdfs::views
