// Fuzz target: the grammar of windows, of names under win/, also of planes, of frames, and of those under ome.zarr/.
// The first byte chooses the image.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "fuzz.h"
#include "geometry/level.h"
#include "geometry/window_spec.h"
#include "views/frames.h"
#include "views/view_file.h"
#include "views/zarr_name.h"
#include "views/zoom_name.h"

using namespace mdfs;

namespace {

geometry::Geometry image(unsigned choice) {
  geometry::Geometry geometry;
  geometry.rank = 1 + choice % 3;
  geometry.channels = choice / 3 % 2 == 0 ? 1 : 3;
  geometry.type = choice / 6 % 2 == 0 ? geometry::ElementType::kU16 : geometry::ElementType::kF64;
  const geometry::Coord shape =
      choice / 12 % 2 == 0 ? geometry::Coord{7, 300, 500} : geometry::Coord{std::uint64_t{1} << 40, 1u << 8, 1u << 7};
  for (unsigned axis = 0; axis < geometry.rank; ++axis) geometry.shape[axis] = shape[axis];
  for (unsigned axis = 0; axis < geometry.rank; ++axis) geometry.extent[axis] = 16;
  geometry.axes = std::string(choice / 24 % 2 == 0 ? "tyx" : "zyx").substr(3 - geometry.rank);
  MDFS_CHECK(geometry::check(geometry).ok());
  return geometry;
}

// Walks a path under ome.zarr/ as far as it leads.
void walk_zarr(const geometry::Geometry& geometry, std::string_view path) {
  views::ZarrName at;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (const auto chunk = views::chunk_of_temporary(geometry, at, path.substr(0, slash)); chunk.ok())
      MDFS_CHECK(chunk->kind == views::ZarrKind::kChunk && views::is_inside(geometry, *chunk));
    const auto entry = views::zarr_entry(geometry, 0, at, path.substr(0, slash));
    if (!entry.ok()) return;
    MDFS_CHECK(views::is_directory(at.kind) && views::is_inside(geometry, *entry));
    MDFS_CHECK(views::to_key(*entry) != views::to_key(at));
    at = *entry;
    path.remove_prefix(std::min(path.size(), slash + 1));
  }
  const geometry::Coord extent = views::extent_of(geometry, at);
  for (unsigned axis = 0; axis < geometry.rank; ++axis) MDFS_CHECK(extent[axis] < geometry.grid()[axis]);
}

// The first samples of a cut: all pieces lie in the level, and in the window around the cut.
void cut(const geometry::Geometry& image, const views::WindowName& name) {
  const geometry::Geometry level = geometry::level_geometry(image, name.level);
  const geometry::CutPlane plane{*name.cut, name.window};
  const auto around = geometry::window_around(level, plane);
  const geometry::CutTile tile{0, std::min<std::uint64_t>(plane.cut.width, 8), 0,
                               std::min<std::uint64_t>(plane.cut.height, 8)};
  const auto pieces = geometry::cut_pieces(level, plane, tile);
  MDFS_CHECK(around.has_value() || pieces.empty());
  std::uint64_t bytes = 0;
  for (const geometry::CutPiece& piece : pieces) {
    MDFS_CHECK(geometry::check(level, piece.window).ok());
    for (unsigned axis = 0; axis < level.rank; ++axis)
      MDFS_CHECK(piece.window.start[axis] >= around->start[axis] &&
                 piece.window.start[axis] + piece.window.length[axis] <= around->start[axis] + around->length[axis]);
    bytes += geometry::window_bytes(level, piece.window);
  }
  const ByteVector samples(bytes);
  const unsigned channels = plane.window.channel ? 1 : level.channels;
  ByteVector into(tile.samples() * channels * geometry::element_bytes(level.type), std::byte{1});
  geometry::fill_cut(level, plane, tile, pieces, samples, into);
  MDFS_CHECK(into == ByteVector(into.size()));
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Reader reader(fuzz::input(data, size));
  const geometry::Geometry geometry = image(reader.take<std::uint8_t>());
  const std::string_view text = as_text(reader.rest());

  if (const auto window = geometry::parse_window(geometry, text); window.ok()) {
    MDFS_CHECK(geometry::check(geometry, *window).ok());
    const auto again = geometry::parse_window(geometry, geometry::to_spec(geometry, *window));
    MDFS_CHECK(again.ok() && *again == *window);
    MDFS_CHECK(geometry::window_bytes(geometry, *window) <= geometry.size_bytes());
  }
  if (const auto name = views::parse_window_name(geometry, text); name.ok()) {
    const auto again = views::parse_window_name(geometry, views::to_name(geometry, *name));
    MDFS_CHECK(again.ok() && *again == *name && views::to_key(*again) == views::to_key(*name));
    const auto known = views::known_size(geometry, *name);
    MDFS_CHECK(known.ok() && known->has_value() != views::is_rendered(name->format));
    if (name->cut) cut(geometry, *name);
    MDFS_CHECK(!known->has_value() || **known > 0);
  }
  for (const unsigned axis : views::plane_axes(geometry)) {
    const auto name = views::parse_plane_window(geometry, {axis, geometry.shape[axis] - 1}, text);
    if (name.ok()) MDFS_CHECK(views::known_size(geometry, *name).ok());
  }
  if (const auto frame = views::parse_frame_name(geometry, "f", text); frame.ok())
    MDFS_CHECK(views::raster_of(geometry, *frame).ok());
  walk_zarr(geometry, text);
  return 0;
}
