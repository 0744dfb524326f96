// Names of Deep Zoom: pictures that viewers zoom into, as tiles of resolution levels. A tile is a window.
//
//   dz.dzi                        an image of two axes: its size, and the side of its tiles
//   dz_files/LEVEL/COLUMN_ROW.jpg a tile; .png where JPEG cannot hold the samples
//   plane/z/10/dz.dzi             one plane of an image of three axes, and its tiles beside it
//   plane/z/10/win/x0+50.png      windows of the plane, as of an image of two axes
//
// The planes along an axis are pictures if the other two axes are axes of space. Levels of an image halve its last two
// axes together: those of the planes along the first axis. A plane along another axis has levels of its own, which are
// computed.
//
// Deep Zoom counts its levels from a picture of one sample upwards; MDFS counts from the image itself downwards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "geometry/geometry.h"
#include "views/view_file.h"

namespace mdfs::views {

inline constexpr std::string_view kZoomDescriptionName = "dz.dzi";
inline constexpr std::string_view kZoomTilesName = "dz_files";
inline constexpr std::string_view kPlanesName = "plane";
inline constexpr std::uint64_t kZoomTileSide = 256;

enum class ZoomKind : std::uint8_t {
  kPlanes,       // plane/
  kPlaneAxis,    // plane/z/
  kPlane,        // plane/z/10/
  kTiles,        // dz_files/
  kLevel,        // dz_files/9/
  kDescription,  // dz.dzi
};
constexpr bool is_directory(ZoomKind kind) { return kind != ZoomKind::kDescription; }

struct ZoomName {
  ZoomKind kind = ZoomKind::kPlanes;
  std::optional<geometry::PlaneIndex> plane;  // of three axes; kPlaneAxis: its axis alone
  unsigned level = 0;                         // of Deep Zoom; kLevel
  bool operator==(const ZoomName&) const = default;
};
// Equal for equal names.
std::string to_key(const ZoomName& name);

// The picture of a Deep Zoom: an image or a plane.
struct ZoomPicture {
  geometry::Geometry image;  // or the plane, if that has levels of its own
  std::optional<geometry::PlaneIndex> plane;
  bool own_levels = false;
  Format format = Format::kPng;  // of its tiles
  unsigned top = 0;              // the level of Deep Zoom that is the image itself
  unsigned stored_levels = 0;    // of the image
  unsigned coarsest = 0;         // level of the image whose tiles are in bounds (level_source.h)

  unsigned lowest() const { return top - coarsest; }  // level of Deep Zoom
  std::uint64_t width() const { return image.shape[image.rank - 1]; }
  std::uint64_t height() const { return image.shape[image.rank - 2]; }
};
// kNotFound: the image has no such picture. It has two axes of space with samples and no `plane`, or three axes, two of
// them of space beside that of `plane`, which is inside; a PNG holds the samples, or there is a range of display.
Result<ZoomPicture> zoom_picture(const ShownImage& image, std::optional<geometry::PlaneIndex> plane);
// A window of a level of the picture, given along the last two axes of `image` alone.
WindowName zoom_window(const ZoomPicture& picture, unsigned level, geometry::Window window);
// The axes along which planes of the image are pictures, in their order.
std::vector<unsigned> plane_axes(const ShownImage& image);
// A name under win/ of a plane. The error says why it does not exist.
Result<WindowName> parse_plane_window(const ShownImage& image, const geometry::PlaneIndex& plane,
                                      std::string_view name);

// The text of dz.dzi.
std::string zoom_description(const ZoomPicture& picture);

struct ZoomGrid {
  std::uint64_t columns = 0, rows = 0;
};
// Tiles of a level of Deep Zoom, lowest() to `top` (else abort).
ZoomGrid zoom_grid(const ZoomPicture& picture, unsigned level);
// The window that a tile inside the grid is (else abort).
WindowName zoom_tile(const ZoomPicture& picture, unsigned level, std::uint64_t column, std::uint64_t row);
// "COLUMN_ROW.jpg", and back: kNotFound if it is spelled in another way or outside the grid, or
// there is no such level.
std::string tile_name(const ZoomPicture& picture, std::uint64_t column, std::uint64_t row);
Result<WindowName> parse_tile_name(const ZoomPicture& picture, unsigned level, std::string_view name);

// The entry `name` of a directory other than kLevel, whose entries are tiles. kNotFound if there is none.
Result<ZoomName> zoom_entry(const ShownImage& image, const ZoomName& directory, std::string_view name);
// kNotFound if the image has no such directory or file, or no longer: its shape has changed.
Status check_zoom_name(const ShownImage& image, const ZoomName& name);

}  // namespace mdfs::views
