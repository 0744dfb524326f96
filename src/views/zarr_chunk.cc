// Reads of one chunk.
// SPDX-License-Identifier: Apache-2.0
#include "views/zarr_chunk.h"

#include <algorithm>

#include "base/check.h"
#include "geometry/level.h"
#include "views/level_view.h"

namespace mdfs::views {
namespace {

std::shared_ptr<const ViewFile> raw_window(const geometry::Geometry& geometry, const geometry::Coord& extent) {
  auto file = view_window(geometry, {window_of_extent(geometry, extent), Format::kRaw});
  MDFS_CHECK(file.ok());
  return std::make_shared<const ViewFile>(std::move(*file));
}

}  // namespace

geometry::Window window_of_extent(const geometry::Geometry& geometry, const geometry::Coord& extent) {
  geometry::Window window;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    window.start[axis] = extent[axis] * geometry.extent[axis];
    MDFS_CHECK(window.start[axis] < geometry.shape[axis]);
    window.length[axis] = std::min(geometry.extent[axis], geometry.shape[axis] - window.start[axis]);
  }
  return window;
}

PaddedExtent padded_extent(const geometry::Geometry& geometry, const geometry::Window& window) {
  PaddedExtent padded{geometry.rank, geometry.extent, window.length};
  padded.extent[geometry.rank - 1] *= geometry.sample_bytes();
  padded.inside[geometry.rank - 1] *= geometry.sample_bytes();
  return padded;
}

std::uint64_t bytes_inside(const PaddedExtent& extent, std::uint64_t end) {
  std::uint64_t steps = 1, inside_step = 1;  // bytes of one step along an axis: of the extent, and inside
  for (unsigned axis = 1; axis < extent.rank; ++axis) {
    steps *= extent.extent[axis];
    inside_step *= extent.inside[axis];
  }
  std::uint64_t count = 0;
  for (unsigned axis = 0; axis < extent.rank; ++axis) {
    const std::uint64_t at = end / steps;
    count += std::min(at, extent.inside[axis]) * inside_step;
    if (at >= extent.inside[axis] || axis + 1 == extent.rank) break;
    end %= steps;
    steps /= extent.extent[axis + 1];
    inside_step /= extent.inside[axis + 1];
  }
  return count;
}

void fill_padded(const PaddedExtent& extent, std::uint64_t offset, ConstBytes inside, MutableBytes into) {
  const std::uint64_t row = extent.extent[extent.rank - 1];
  const std::uint64_t end = offset + into.size();
  std::fill(into.begin(), into.end(), std::byte{0});
  for (std::uint64_t at = offset; at < end && !inside.empty();) {
    const std::uint64_t next = std::min(end, at - at % row + row);
    const std::uint64_t count = bytes_inside(extent, next) - bytes_inside(extent, at);
    MDFS_CHECK(count <= inside.size());
    std::copy_n(inside.begin(), count, into.begin() + static_cast<std::ptrdiff_t>(at - offset));
    inside = inside.subspan(count);
    at = next;
  }
  MDFS_CHECK(inside.empty());
}

ZarrChunk::ZarrChunk(volume::Volume& volume, volume::Ino image, const geometry::Geometry& geometry,
                     const geometry::Coord& extent)
    : volume_(volume),
      image_(image),
      geometry_(geometry),
      extent_(padded_extent(geometry, window_of_extent(geometry, extent))),
      size_(geometry.extent_bytes()),
      reader_(volume, image, raw_window(geometry, extent)) {}

ZarrChunk::ZarrChunk(volume::Volume& volume, volume::Ino image, const geometry::Geometry& geometry, unsigned level,
                     const geometry::Coord& extent, StagingPool& pool, std::uint32_t owner)
    : volume_(volume),
      image_(image),
      geometry_(geometry),
      level_(level),
      pool_(&pool),
      owner_(owner),
      extent_(padded_extent(geometry::level_geometry(geometry, level),
                            window_of_extent(geometry::level_geometry(geometry, level), extent))),
      size_(geometry.extent_bytes()),
      reader_(volume, image, raw_window(geometry::level_geometry(geometry, level), extent)) {}

Result<std::size_t> ZarrChunk::read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) {
  return read_padded(offset, into, false, stop);
}

Result<std::size_t> ZarrChunk::read_newest(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) {
  return read_padded(offset, into, true, stop);
}

Result<std::size_t> ZarrChunk::read_level(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) {
  const std::lock_guard lock(mutex_);
  if (computed_) return computed_->read(offset, into, stop);
  const Status stored = read_stored_level(volume_, image_, level_, window(), offset, into, kStoredAttempts, stop);
  if (stored.ok()) return into.size();
  if (stored.error().code != Errc::kReadOnly) return stored.error();
  const WindowName name{window(), Format::kRaw, level_};
  MDFS_TRY_ASSIGN(computed_, LevelView::open(volume_, image_, geometry_, name, *pool_, owner_, stop));
  return computed_->read(offset, into, stop);
}

Result<std::size_t> ZarrChunk::read_padded(std::uint64_t offset, MutableBytes into, bool newest,
                                           const engine::Stop& stop) {
  if (offset >= size_) return std::size_t{0};
  into = into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), size_ - offset)));
  const auto read_inside = [&](std::uint64_t from, MutableBytes bytes) -> Result<std::size_t> {
    if (level_ > 0) return read_level(from, bytes, stop);
    return newest ? reader_.read_newest(from, bytes, stop) : reader_.read(from, bytes, stop);
  };
  if (extent_.inside == extent_.extent) return read_inside(offset, into);
  const std::uint64_t first = bytes_inside(extent_, offset);
  ByteVector inside(bytes_inside(extent_, offset + into.size()) - first);
  if (!inside.empty()) {
    MDFS_TRY_ASSIGN(const std::size_t count, read_inside(first, inside));
    MDFS_CHECK(count == inside.size());
  }
  fill_padded(extent_, offset, inside, into);
  return into.size();
}

}  // namespace mdfs::views
