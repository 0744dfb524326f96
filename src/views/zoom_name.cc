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
  std::uint64_t plane = *picture.plane;
  for (unsigned n = 0; n < level; ++n)
    if (geometry::halved_axes(geometry::level_geometry(picture.image, n))[0]) plane /= 2;
  return plane;
}

}  // namespace

std::string to_key(const ZoomName& name) {
  if (name.kind == ZoomKind::kPlanes) return "planes";
  if (name.kind == ZoomKind::kPlaneAxis) return "planes/axis";
  std::string key = name.plane ? fmt::format("plane/{}", *name.plane) : "image";
  if (name.kind == ZoomKind::kDescription) key += "/dzi";
  if (name.kind == ZoomKind::kTiles) key += "/tiles";
  if (name.kind == ZoomKind::kLevel) key += fmt::format("/tiles/{}", name.level);
  return key;
}

WindowName zoom_window(const ZoomPicture& picture, unsigned level, geometry::Window window) {
  if (picture.plane) {
    window.start[0] = plane_in_level(picture, level);
    window.length[0] = 1;
    window.single[0] = true;
  }
  return {.window = window, .format = picture.format, .level = level};
}

Result<ZoomPicture> zoom_picture(const ShownImage& shown, std::optional<std::uint64_t> plane) {
  const Geometry& image = shown.geometry;
  const unsigned rank = plane ? 3 : 2;
  if (image.rank != rank) return Error{Errc::kNotFound, fmt::format("the image has {} axes, not {}", image.rank, rank)};
  const geometry::HalvedAxes halved = geometry::halved_axes(image);
  if (!halved[rank - 1] || !halved[rank - 2])
    return Error{Errc::kNotFound, "the last two axes are not a plane of space"};
  if (std::count(image.shape.begin(), image.shape.begin() + rank, 0) > 0)
    return Error{Errc::kNotFound, "the image has no samples"};
  if (plane && *plane >= image.shape[0])
    return Error{Errc::kNotFound, fmt::format("plane {} is not below {}", *plane, image.shape[0])};
  ZoomPicture picture{.image = image, .plane = plane, .format = Format::kJpg, .top = 0};
  picture.top = static_cast<unsigned>(std::bit_width(std::max(picture.width(), picture.height()) - 1));
  picture.stored_levels = shown.stored_levels;
  picture.coarsest = std::min(picture.top, coarsest_level(image, shown.stored_levels, kZoomTileSide));
  geometry::Window one;
  std::fill_n(one.length.begin(), rank, 1);
  if (!raster_of(shown, zoom_window(picture, 0, one)).ok()) picture.format = Format::kPng;
  if (const auto raster = raster_of(shown, zoom_window(picture, 0, one)); !raster.ok())
    return Error{Errc::kNotFound, raster.error().where};
  return picture;
}

bool has_planes(const ShownImage& image) { return zoom_picture(image, 0).ok(); }

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
      if (name != std::string_view(image.geometry.axes).substr(0, 1)) return not_there(name);
      break;
    case ZoomKind::kPlaneAxis: {
      entry.kind = ZoomKind::kPlane;
      entry.plane = parse_index(name);
      if (!entry.plane) return not_there(name);
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
  if (name.kind == ZoomKind::kPlanes || name.kind == ZoomKind::kPlaneAxis)
    return has_planes(image) ? Status() : Status(Errc::kNotFound, to_key(name) + ": the image has no such planes");
  MDFS_TRY_ASSIGN(const ZoomPicture picture, zoom_picture(image, name.plane));
  if (name.kind == ZoomKind::kLevel && (name.level < picture.lowest() || name.level > picture.top))
    return {Errc::kNotFound, to_key(name) + ": no such level"};
  return {};
}

}  // namespace mdfs::views
