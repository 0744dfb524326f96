// Computes cuts, tile after tile.
// SPDX-License-Identifier: Apache-2.0
#include "views/cut_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "base/check.h"
#include "geometry/cut.h"
#include "geometry/decompose.h"
#include "views/computed_view.h"
#include "views/level_view.h"

namespace mdfs::views {
namespace {

using geometry::CutPiece;
using geometry::CutPlane;
using geometry::CutTile;
using geometry::Geometry;
using geometry::Window;

constexpr unsigned kCutAttempts = 8;  // at a version that lasts until its last tile
// A tile at most: many extents lie under it, on all disks. Its samples lie in memory twice.
constexpr std::uint64_t kCutTileSide = 512;
constexpr std::uint64_t kCutTileBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kCutPieceBytes = std::uint64_t{32} << 20;  // of extents under a tile

// Reads windows of the volume, one after another in `into`.
using ReadParts = std::function<Status(std::span<const Window> parts, MutableBytes into)>;

std::uint64_t bytes_of(const Geometry& geometry, const std::vector<CutPiece>& pieces) {
  std::uint64_t bytes = 0;
  for (const CutPiece& piece : pieces) bytes += geometry::window_bytes(geometry, piece.window);
  return bytes;
}

// The halves of a tile along its longer side.
std::pair<CutTile, CutTile> halves(const CutTile& tile) {
  std::pair<CutTile, CutTile> both{tile, tile};
  if (tile.last_column - tile.first_column >= tile.last_row - tile.first_row)
    both.first.last_column = both.second.first_column = tile.first_column + (tile.last_column - tile.first_column) / 2;
  else
    both.first.last_row = both.second.first_row = tile.first_row + (tile.last_row - tile.first_row) / 2;
  return both;
}

class Cutter {
 public:
  Cutter(const Geometry& geometry, const CutPlane& plane, const ReadParts& read, Staging& into,
         const engine::Stop& stop)
      : geometry_(geometry),
        plane_(plane),
        read_(read),
        into_(into),
        stop_(stop),
        sample_bytes_(geometry::cut_bytes(geometry, plane) / plane.cut.width / plane.cut.height) {}

  Status make(const CutTile& tile) {
    MDFS_TRY(engine::stopped(stop_));
    const bool too_large =
        std::max(tile.last_column - tile.first_column, tile.last_row - tile.first_row) > kCutTileSide ||
        tile.samples() * sample_bytes_ > kCutTileBytes;
    if (tile.samples() > 1 && too_large) return make_halves(tile);
    const std::vector<CutPiece> pieces = geometry::cut_pieces(geometry_, plane_, tile);
    const std::uint64_t bytes = bytes_of(geometry_, pieces);
    if (tile.samples() > 1 && bytes > kCutPieceBytes) return make_halves(tile);
    std::vector<Window> windows;
    for (const CutPiece& piece : pieces) windows.push_back(piece.window);
    ByteVector samples(static_cast<std::size_t>(bytes));
    if (!windows.empty()) MDFS_TRY(read_(windows, samples));
    ByteVector made(static_cast<std::size_t>(tile.samples() * sample_bytes_));
    geometry::fill_cut(geometry_, plane_, tile, pieces, samples, made);
    const std::uint64_t row_bytes = (tile.last_column - tile.first_column) * sample_bytes_;
    for (std::uint64_t row = tile.first_row; row < tile.last_row; ++row)
      MDFS_TRY(into_.write((row * plane_.cut.width + tile.first_column) * sample_bytes_,
                           ConstBytes(made).subspan((row - tile.first_row) * row_bytes, row_bytes)));
    return {};
  }

 private:
  Status make_halves(const CutTile& tile) {
    const auto [first, second] = halves(tile);
    MDFS_TRY(make(first));
    return make(second);
  }

  const Geometry& geometry_;
  const CutPlane& plane_;
  const ReadParts& read_;
  Staging& into_;
  const engine::Stop& stop_;
  const std::uint64_t sample_bytes_;
};

// Windows inside `around`, whose samples `view` has: row by row.
Status read_from(View& view, const Geometry& geometry, const Window& around, std::span<const Window> parts,
                 MutableBytes into, const engine::Stop& stop) {
  const geometry::Box whole = geometry::byte_box(geometry, around);
  const unsigned last = geometry.rank - 1;
  for (const Window& part : parts) {
    const geometry::Box box = geometry::byte_box(geometry, part);
    geometry::Coord first = box.start, end = box.start;
    for (unsigned axis = 0; axis < last; ++axis) end[axis] += box.length[axis];
    geometry::Coord row = first;
    do {
      std::uint64_t offset = 0;
      for (unsigned axis = 0; axis < geometry.rank; ++axis)
        offset = offset * whole.length[axis] + row[axis] - whole.start[axis];
      MDFS_TRY_ASSIGN(const std::size_t count, view.read(offset, into.first(box.length[last]), stop));
      MDFS_CHECK(count == box.length[last]);
      into = into.subspan(count);
    } while (geometry::step_in(last, first, end, row));
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<View>> open_cut(volume::Volume& volume, volume::Ino image, const Geometry& geometry,
                                       const WindowName& name, StagingPool& pool, std::uint32_t owner,
                                       const engine::Stop& stop) {
  MDFS_CHECK(name.cut.has_value());
  MDFS_TRY_ASSIGN(ViewFile file, view_window(geometry, name));
  const std::uint64_t most = std::min(kMaxCutBytes, pool.limits().window_bytes);
  if (file.data_bytes > most)
    return Error{Errc::kTooBig, fmt::format("a cut of {} bytes; it has at most {}", file.data_bytes, most)};
  MDFS_TRY_ASSIGN(const Geometry level, level_of(geometry, name));
  const CutPlane plane{*name.cut, name.window};
  MDFS_TRY_ASSIGN(auto staging, Staging::create(pool, owner, file.data_bytes));
  const auto around = geometry::window_around(level, plane);
  const auto make = [&](const ReadParts& read) {
    return Cutter(level, plane, read, *staging, stop).make(geometry::whole(plane.cut));
  };
  if (!around) {
    MDFS_TRY(make({}));
  } else if (name.level > 0) {
    const std::uint64_t bytes = geometry::window_bytes(level, *around);
    if (bytes > kMaxCutBytes)
      return Error{Errc::kTooBig, fmt::format("a cut through {} bytes of level {}; at most {} are read", bytes,
                                              name.level, kMaxCutBytes)};
    const WindowName raw{.window = *around, .format = Format::kRaw, .level = name.level};
    MDFS_TRY_ASSIGN(const auto samples, open_level(volume, image, geometry, raw, pool, owner, stop));
    MDFS_TRY(make([&](std::span<const Window> parts, MutableBytes into) {
      return read_from(*samples, level, *around, parts, into, stop);
    }));
  } else {
    for (unsigned attempt = 1;; ++attempt) {
      MDFS_TRY_ASSIGN(const auto pinned, volume.pin_window(image, *around));
      const Status made =
          make([&](std::span<const Window> parts, MutableBytes into) { return pinned->read_parts(parts, into, stop); });
      if (made.ok()) break;
      if (made.error().code != Errc::kStaleDisk || attempt == kCutAttempts) return made.error();
    }
  }
  return std::shared_ptr<View>(std::make_shared<ComputedView>(std::move(file), std::move(staging)));
}

}  // namespace mdfs::views
