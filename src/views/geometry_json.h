// The attribute user.mdfs.geometry: what makes a file an image, as text that archives keep and bring back.
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
  std::uint64_t size_bytes = 0;  // of the file: the last step along the slowest axis may be there in part
  bool operator==(const SizedGeometry&) const = default;
};

// One JSON object without line breaks; arrays slowest axis first. shape, type and size_bytes are always there.
std::string geometry_json(const SizedGeometry& sized);
// Reads what geometry_json() wrote, or a user, who may leave out all but shape and type: then extents, names of axes
// and size are what `mdfs image create` would choose. Keys that are not known are skipped. kInvalidArgument names the
// field. The geometry has passed geometry::check().
Result<SizedGeometry> parse_geometry_json(std::string_view text);

}  // namespace mdfs::views
