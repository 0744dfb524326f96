// The tree of names of Deep Zoom.
// SPDX-License-Identifier: Apache-2.0
#include "views/zoom_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/checked.h"
#include "base/text.h"
#include "geometry/level.h"
#include "views/level_source.h"

namespace mdfs::views {
namespace {

using geometry::Geometry;

Error not_there(std::string_view name) { return Error{Errc::kNotFound, std::string(name)}; }

// The level of the image that a level of Deep Zoom is.
unsigned image_level(const ZoomPicture& picture, unsigned level) {
  MDFS_CHECK(level >= picture.lowest() && level <= picture.top);
  return picture.top - level;
}

// The index of the plane in a level: the axis may be halved, too.
std::uint64_t plane_in_level(const ZoomPicture& picture, unsigned level) {
  std::uint64_t plane = picture.plane->index;
  for (unsigned n = 0; n < level; ++n)
    if (geometry::halved_axes(geometry::level_geometry(picture.image, n))[0]) plane /= 2;
  return plane;
}

}  // namespace

std::string to_key(const ZoomName& name) {
  if (name.kind == ZoomKind::kPlanes) return "planes";
  if (name.kind == ZoomKind::kPlaneAxis) return fmt::format("planes/{}", name.plane->axis);
  std::string key = name.plane ? fmt::format("plane/{}/{}", name.plane->axis, name.plane->index) : "image";
  if (name.kind == ZoomKind::kDescription) key += "/dzi";
  if (name.kind == ZoomKind::kTiles) key += "/tiles";
  if (name.kind == ZoomKind::kLevel) key += fmt::format("/tiles/{}", name.level);
  return key;
}

WindowName zoom_window(const ZoomPicture& picture, unsigned level, geometry::Window window) {
  WindowName name{.window = window, .format = picture.format, .level = level};
  if (picture.own_levels && level > 0) {
    name.plane = picture.plane;
  } else if (picture.own_levels) {
    name.window = geometry::in_volume(window, *picture.plane);
  } else if (picture.plane) {
    name.window.start[0] = plane_in_level(picture, level);
    name.window.length[0] = 1;
    name.window.single[0] = true;
  }
  return name;
}

Result<ZoomPicture> zoom_picture(const ShownImage& shown, std::optional<geometry::PlaneIndex> plane) {
  const Geometry& image = shown.geometry;
  const unsigned rank = plane ? 3 : 2;
  if (image.rank != rank) return Error{Errc::kNotFound, fmt::format("the image has {} axes, not {}", image.rank, rank)};
  if (plane && (plane->axis >= rank || plane->index >= image.shape[plane->axis]))
    return Error{Errc::kNotFound, fmt::format("no plane {} along axis {}", plane->index, plane->axis)};
  const Geometry flat = plane ? geometry::plane_geometry(image, plane->axis) : image;
  const geometry::HalvedAxes halved = geometry::halved_axes(flat);
  if (!halved[0] || !halved[1]) return Error{Errc::kNotFound, "the two axes are not a plane of space"};
  if (std::count(image.shape.begin(), image.shape.begin() + rank, 0) > 0)
    return Error{Errc::kNotFound, "the image has no samples"};
  ZoomPicture picture{.image = image, .plane = plane, .format = Format::kJpg, .top = 0};
  picture.own_levels = plane && plane->axis > 0;
  if (picture.own_levels) picture.image = flat;
  picture.top = static_cast<unsigned>(std::bit_width(std::max(picture.width(), picture.height()) - 1));
  picture.stored_levels = picture.own_levels ? 0 : shown.stored_levels;
  picture.coarsest = std::min(picture.top, coarsest_level(picture.image, picture.stored_levels, kZoomTileSide));
  geometry::Window one;
  std::fill_n(one.length.begin(), picture.image.rank, 1);
  if (!raster_of(shown, zoom_window(picture, 0, one)).ok()) picture.format = Format::kPng;
  if (const auto raster = raster_of(shown, zoom_window(picture, 0, one)); !raster.ok())
    return Error{Errc::kNotFound, raster.error().where};
  return picture;
}

std::vector<unsigned> plane_axes(const ShownImage& image) {
  std::vector<unsigned> axes;
  for (unsigned axis = 0; axis < image.geometry.rank; ++axis)
    if (zoom_picture(image, geometry::PlaneIndex{axis, 0}).ok()) axes.push_back(axis);
  return axes;
}

Result<WindowName> parse_plane_window(const ShownImage& image, const geometry::PlaneIndex& plane,
                                      std::string_view name) {
  MDFS_TRY_ASSIGN(const ZoomPicture picture, zoom_picture(image, plane));
  ShownImage flat = image;
  flat.geometry = geometry::plane_geometry(image.geometry, plane.axis);
  MDFS_TRY_ASSIGN(WindowName parsed, parse_window_name(flat, name));
  if (picture.own_levels && parsed.level > 0) {
    parsed.plane = plane;
    return parsed;
  }
  const std::uint64_t index = picture.own_levels ? plane.index : plane_in_level(picture, parsed.level);
  parsed.window = geometry::in_volume(parsed.window, {plane.axis, index});
  parsed.padding.before = geometry::in_volume(parsed.padding.before, plane.axis, 0);
  parsed.padding.after = geometry::in_volume(parsed.padding.after, plane.axis, 0);
  if (parsed.format == Format::kRaw) parsed.window.single = {};  // as parse_window_name() has it
  return parsed;
}

std::string zoom_description(const ZoomPicture& picture) {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<Image xmlns=\"http://schemas.microsoft.com/deepzoom/2008\" Format=\"{}\" Overlap=\"0\" TileSize=\"{}\">\n"
      "  <Size Width=\"{}\" Height=\"{}\"/>\n"
      "</Image>\n",
      suffix(picture.format), kZoomTileSide, picture.width(), picture.height());
}

ZoomGrid zoom_grid(const ZoomPicture& picture, unsigned level) {
  const Geometry below = geometry::level_geometry(picture.image, image_level(picture, level));
  return {.columns = ceil_div(below.shape[below.rank - 1], kZoomTileSide),
          .rows = ceil_div(below.shape[below.rank - 2], kZoomTileSide)};
}

WindowName zoom_tile(const ZoomPicture& picture, unsigned level, std::uint64_t column, std::uint64_t row) {
  const unsigned in_image = image_level(picture, level);
  const Geometry below = geometry::level_geometry(picture.image, in_image);
  geometry::Window window;
  const auto cut = [&](unsigned axis, std::uint64_t number) {
    window.start[axis] = number * kZoomTileSide;
    MDFS_CHECK(window.start[axis] < below.shape[axis]);
    window.length[axis] = std::min(kZoomTileSide, below.shape[axis] - window.start[axis]);
  };
  cut(below.rank - 1, column);
  cut(below.rank - 2, row);
  return zoom_window(picture, in_image, window);
}

std::string tile_name(const ZoomPicture& picture, std::uint64_t column, std::uint64_t row) {
  return fmt::format("{}_{}.{}", column, row, suffix(picture.format));
}

Result<WindowName> parse_tile_name(const ZoomPicture& picture, unsigned level, std::string_view name) {
  const std::size_t mark = std::min(name.find('_'), name.size());
  const std::size_t dot = std::min(name.find('.', mark), name.size());
  const auto column = parse_index(name.substr(0, mark));
  const auto row = mark < dot ? parse_index(name.substr(mark + 1, dot - mark - 1)) : std::nullopt;
  if (!column || !row || dot == name.size() || name.substr(dot + 1) != suffix(picture.format)) return not_there(name);
  if (level < picture.lowest() || level > picture.top) return not_there(name);
  const ZoomGrid grid = zoom_grid(picture, level);
  if (*column >= grid.columns || *row >= grid.rows) return not_there(name);
  return zoom_tile(picture, level, *column, *row);
}

Result<ZoomName> zoom_entry(const ShownImage& image, const ZoomName& directory, std::string_view name) {
  ZoomName entry = directory;
  switch (directory.kind) {
    case ZoomKind::kPlanes:
      entry.kind = ZoomKind::kPlaneAxis;
      if (name.size() != 1 || image.geometry.axes.find(name) == std::string::npos) return not_there(name);
      entry.plane = geometry::PlaneIndex{static_cast<unsigned>(image.geometry.axes.find(name)), 0};
      break;
    case ZoomKind::kPlaneAxis: {
      entry.kind = ZoomKind::kPlane;
      const auto index = parse_index(name);
      if (!index) return not_there(name);
      entry.plane->index = *index;
      break;
    }
    case ZoomKind::kPlane:
      entry.kind = name == kZoomDescriptionName ? ZoomKind::kDescription : ZoomKind::kTiles;
      if (name != kZoomDescriptionName && name != kZoomTilesName) return not_there(name);
      break;
    case ZoomKind::kTiles: {
      entry.kind = ZoomKind::kLevel;
      MDFS_TRY_ASSIGN(const ZoomPicture picture, zoom_picture(image, directory.plane));
      const auto level = parse_index(name);
      if (!level || *level < picture.lowest() || *level > picture.top) return not_there(name);
      entry.level = static_cast<unsigned>(*level);
      break;
    }
    case ZoomKind::kLevel:
    case ZoomKind::kDescription:
      return Error{Errc::kNotDirectory, std::string(name)};
  }
  MDFS_TRY(check_zoom_name(image, entry));
  return entry;
}

Status check_zoom_name(const ShownImage& image, const ZoomName& name) {
  if (name.kind == ZoomKind::kPlanes)
    return !plane_axes(image).empty() ? Status()
                                      : Status(Errc::kNotFound, to_key(name) + ": the image has no such planes");
  MDFS_TRY_ASSIGN(const ZoomPicture picture, zoom_picture(image, name.plane));
  if (name.kind == ZoomKind::kLevel && (name.level < picture.lowest() || name.level > picture.top))
    return {Errc::kNotFound, to_key(name) + ": no such level"};
  return {};
}

}  // namespace mdfs::views
