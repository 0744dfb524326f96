// What an image is, in one line.
// SPDX-License-Identifier: Apache-2.0
#include "image_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "codec/codec_table.h"
#include "geometry/shape_text.h"
#include "support/text.h"

namespace mdfs::tools {

std::string codec_text(const geometry::Geometry& geometry) {
  return codec::choice_text(geometry.codec, geometry.codec_level);
}

std::string spacing_text(const geometry::Geometry& geometry) {
  std::string text;
  for (unsigned axis = 0; axis < geometry.rank; ++axis)
    text += (axis > 0 ? ", " : "") + (geometry.spacing[axis] == 0
                                          ? std::string("unknown")
                                          : fmt::format("{}{}", geometry.spacing[axis], geometry.unit[axis]));
  return text;
}

std::string image_line(const std::string& path, const geometry::Geometry& geometry, const mdfs_ioc_geometry& made) {
  const bool known = std::any_of(geometry.spacing.begin(), geometry.spacing.end(), [](double one) { return one > 0; });
  return fmt::format("{}: axes {}, shape {}, {} channel{}, {}, extents of {}, {}, {} disk{}{}", path, geometry.axes,
                     geometry::shape_text(geometry.rank, geometry.shape), geometry.channels,
                     geometry.channels == 1 ? "" : "s", geometry::name(geometry.type),
                     geometry::shape_text(geometry.rank, geometry.extent), codec_text(geometry), made.placed_disks,
                     made.placed_disks == 1 ? "" : "s", known ? ", spacing " + spacing_text(geometry) : "");
}

std::string array_line(const std::string& path, const imagefile::ArrayInfo& array, std::uint64_t bytes) {
  return fmt::format("{}: axes {}, shape {}, {}, {} of samples", path, array.axes, format_shape(array.lengths),
                     geometry::name(array.type), format_size(bytes));
}

}  // namespace mdfs::tools
