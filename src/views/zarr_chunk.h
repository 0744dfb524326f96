// Chunks of the array under ome.zarr/: the samples of one extent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "geometry/decompose.h"
#include "geometry/geometry.h"
#include "views/staging.h"
#include "views/view.h"
#include "views/window_reader.h"
#include "volume/volume.h"

namespace mdfs::views {

// The part of the image that lies in an extent, which lies in the grid.
geometry::Window window_of_extent(const geometry::Geometry& geometry, const geometry::Coord& extent);

// The bytes of an extent of which only a part, `inside` from the start of each axis, lies in the image. The fastest
// axis is in bytes.
struct PaddedExtent {
  unsigned rank = 0;
  geometry::Coord extent{};
  geometry::Coord inside{};
};
PaddedExtent padded_extent(const geometry::Geometry& geometry, const geometry::Window& window);
// How many of the first `end` bytes of the extent lie inside.
std::uint64_t bytes_inside(const PaddedExtent& extent, std::uint64_t end);
// Fills `into`, bytes [offset, offset + into.size()) of the extent: those inside with `inside`, which has as many as
// there are, all others with zeros.
void fill_padded(const PaddedExtent& extent, std::uint64_t offset, ConstBytes inside, MutableBytes into);

// The decoded samples of one extent in one version of the image; what lies outside the image is zero. Any thread.
class ZarrChunk final : public View {
 public:
  // Of the image. The extent lies in its grid (abort).
  ZarrChunk(volume::Volume& volume, volume::Ino image, const geometry::Geometry& geometry,
            const geometry::Coord& extent);
  // Of a stored level of the image. What is not built is computed where it cannot be stored, within the bounds of
  // LevelView, and kept in the pool. The extent lies in the grid of the level (abort).
  ZarrChunk(volume::Volume& volume, volume::Ino image, const geometry::Geometry& geometry, unsigned level,
            const geometry::Coord& extent, StagingPool& pool, std::uint32_t owner);

  const geometry::Window& window() const { return reader_.file()->window; }
  std::uint64_t size_bytes() const override { return size_; }
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop = {}) override;
  Result<std::size_t> read_newest(std::uint64_t offset, MutableBytes into, const engine::Stop& stop = {}) override;
  bool may_cache() const override { return level_ == 0; }  // the kernel is not told of changes of levels

 private:
  Result<std::size_t> read_level(std::uint64_t offset, MutableBytes into, const engine::Stop& stop);
  Result<std::size_t> read_padded(std::uint64_t offset, MutableBytes into, bool newest, const engine::Stop& stop);

  volume::Volume& volume_;
  const volume::Ino image_;
  const geometry::Geometry geometry_;  // of the image
  const unsigned level_ = 0;
  StagingPool* const pool_ = nullptr;  // null: of the image
  const std::uint32_t owner_ = 0;
  const PaddedExtent extent_;
  const std::uint64_t size_;
  WindowReader reader_;  // of the part inside the image, for level 0
  std::mutex mutex_;     // guards the next; held while it is computed
  std::shared_ptr<View> computed_;
};

}  // namespace mdfs::views
