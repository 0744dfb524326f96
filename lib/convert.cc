// Between the structures of the ioctls and the geometry of the core, on the side of the caller.
// SPDX-License-Identifier: Apache-2.0
#include "convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/checked.h"
#include "geometry/default_extent.h"
#include "geometry/level.h"

namespace mdfs::client {
namespace {

template <std::size_t N>
std::string text_of(const char (&field)[N]) {
  return {field, strnlen(field, N)};
}

template <std::size_t N>
void put_text(char (&field)[N], const std::string& text) {
  std::memcpy(field, text.data(), std::min(text.size(), N - 1));
}

Result<geometry::Geometry> fields(const mdfs_ioc_geometry& from) {
  geometry::Geometry to;
  if (from.rank < 1 || from.rank > geometry::kMaxRank)
    return Error{Errc::kNotSupported,
                 fmt::format("an image of {} axes; 1 to {} are known", from.rank, geometry::kMaxRank)};
  to.rank = from.rank;
  for (unsigned axis = 0; axis < to.rank; ++axis) {
    to.shape[axis] = from.shape[axis];
    to.extent[axis] = from.extent[axis];
    to.spacing[axis] = from.spacing[axis];
    to.unit[axis] = text_of(from.unit[axis]);
  }
  to.channels = from.channels;
  to.type = static_cast<geometry::ElementType>(from.type);
  to.codec = static_cast<geometry::Codec>(from.codec);
  to.codec_level = from.codec_level;
  to.policy = static_cast<geometry::AllocationPolicy>(from.policy);
  to.axes = text_of(from.axes);
  return to;
}

bool known_type(std::uint8_t type) {
  return type >= static_cast<std::uint8_t>(geometry::ElementType::kU8) &&
         type <= static_cast<std::uint8_t>(geometry::ElementType::kF64);
}

}  // namespace

Result<geometry::Geometry> to_geometry(const mdfs_ioc_geometry& from) {
  if (!known_type(from.type)) return Error{Errc::kNotSupported, fmt::format("element type {}", from.type)};
  MDFS_TRY_ASSIGN(geometry::Geometry to, fields(from));
  MDFS_TRY(geometry::check(to));
  return to;
}

mdfs_ioc_geometry from_geometry(const geometry::Geometry& from) {
  mdfs_ioc_geometry to{};
  to.struct_bytes = sizeof to;
  to.rank = static_cast<std::uint8_t>(from.rank);
  to.type = static_cast<std::uint8_t>(from.type);
  to.channels = static_cast<std::uint16_t>(from.channels);
  to.codec = static_cast<std::uint8_t>(from.codec);
  to.codec_level = static_cast<std::int8_t>(from.codec_level);
  to.policy = static_cast<std::uint8_t>(from.policy);
  to.row_offset = to.plane_offset = -1;
  for (unsigned axis = 0; axis < from.rank; ++axis) {
    to.shape[axis] = from.shape[axis];
    to.extent[axis] = static_cast<std::uint32_t>(from.extent[axis]);
    to.spacing[axis] = from.spacing[axis];
    put_text(to.unit[axis], from.unit[axis]);
  }
  put_text(to.axes, from.axes);
  return to;
}

mdfs_ioc_window from_window(const geometry::Geometry& geometry, const geometry::Window& window) {
  mdfs_ioc_window to{};
  to.struct_bytes = sizeof to;
  to.rank = geometry.rank;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    to.start[axis] = window.start[axis];
    to.length[axis] = window.length[axis];
  }
  to.channel = window.channel ? static_cast<std::int32_t>(*window.channel) : -1;
  return to;
}

mdfs_ioc_window from_window(const geometry::Geometry& image, const geometry::LevelWindow& window) {
  mdfs_ioc_window to = from_window(image, window.window);
  to.level = window.level;
  return to;
}

Result<mdfs_ioc_geometry> level_info(const mdfs_ioc_geometry& image, std::uint32_t level) {
  if (level == 0) return image;
  MDFS_TRY_ASSIGN(geometry::Geometry geometry, to_geometry(image));
  if (const unsigned count = geometry::level_count(geometry); level > count)
    return Error{Errc::kOutOfRange, fmt::format("level {} is not in 0..{}", level, count)};
  mdfs_ioc_geometry answer = image;
  std::uint64_t slabs = geometry.slab_bytes() == 0 ? 0 : image.size_bytes / geometry.slab_bytes();
  for (unsigned n = 0; n < level; ++n) {
    if (geometry::halved_axes(geometry)[0]) slabs = ceil_div(slabs, std::uint64_t{2});
    geometry = geometry::geometry_above(std::move(geometry));
  }
  std::copy_n(geometry.shape.begin(), geometry.rank, answer.shape);
  std::copy_n(geometry.spacing.begin(), geometry.rank, answer.spacing);
  answer.size_bytes = slabs * geometry.slab_bytes();
  answer.stored_bytes = answer.placement_base = 0;
  return answer;
}

Status check_new_image(const mdfs_ioc_geometry& from) {
  if (from.struct_bytes != sizeof from)
    return {Errc::kInvalidArgument, fmt::format("struct_bytes is {}, not {}", from.struct_bytes, sizeof from)};
  if (!known_type(from.type)) return {Errc::kInvalidArgument, fmt::format("element type {}", from.type)};
  MDFS_TRY_ASSIGN(geometry::Geometry geometry, fields(from));
  if (geometry.axes.empty()) geometry.axes = geometry::default_axes(geometry.rank, false, geometry.channels > 1);
  const bool chosen = std::all_of(geometry.extent.begin(), geometry.extent.end(), [](auto n) { return n == 0; });
  if (chosen)
    geometry.extent = geometry::default_extent(geometry.rank, geometry.shape,
                                               std::max<std::uint64_t>(1, geometry.sample_bytes()), geometry.axes);
  MDFS_TRY(geometry::check(geometry));
  return geometry::check_extent(geometry);
}

}  // namespace mdfs::client
