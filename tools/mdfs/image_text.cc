// What an image is, in one line.
// SPDX-License-Identifier: Apache-2.0
#include "image_text.h"

#include <fmt/format.h>

#include "geometry/shape_text.h"
#include "support/text.h"

namespace mdfs::tools {

std::string codec_text(const geometry::Geometry& geometry) {
  return geometry.codec == geometry::Codec::kRaw ? "raw" : fmt::format("zstd:{}", geometry.codec_level);
}

std::string image_line(const std::string& path, const geometry::Geometry& geometry, const mdfs_ioc_geometry& made) {
  return fmt::format("{}: axes {}, shape {}, {} channel{}, {}, extents of {}, {}, {} disk{}", path, geometry.axes,
                     geometry::shape_text(geometry.rank, geometry.shape), geometry.channels,
                     geometry.channels == 1 ? "" : "s", geometry::name(geometry.type),
                     geometry::shape_text(geometry.rank, geometry.extent), codec_text(geometry), made.placed_disks,
                     made.placed_disks == 1 ? "" : "s");
}

std::string array_line(const std::string& path, const imagefile::ArrayInfo& array, std::uint64_t bytes) {
  return fmt::format("{}: axes {}, shape {}, {}, {} of samples", path, array.axes, format_shape(array.lengths),
                     geometry::name(array.type), format_size(bytes));
}

}  // namespace mdfs::tools
