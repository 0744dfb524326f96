// Chunks of the array under ome.zarr/: the samples of one extent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "geometry/geometry.h"
#include "geometry/padded_box.h"
#include "views/staging.h"
#include "views/view.h"
#include "volume/volume.h"

namespace mdfs::views {

// The decoded samples of one extent in one version of the image; what lies outside the image is zero. Any thread.
class ZarrChunk final : public View {
 public:
  // Of the image. The extent lies in its grid (abort).
  ZarrChunk(volume::Volume& volume, volume::Ino image, const geometry::Geometry& geometry,
            const geometry::Coord& extent);
  struct LevelExtent {
    unsigned level = 0;           // stored, 1 or more
    geometry::Geometry geometry;  // of the level
    geometry::Coord extent{};     // in the grid of the level (else abort)
  };
  // Of a stored level of the image, whose geometry is given. What is not built is computed where it cannot be stored,
  // within the bounds of open_level(), and kept in the pool.
  ZarrChunk(volume::Volume& volume, volume::Ino image, const geometry::Geometry& geometry, const LevelExtent& of,
            StagingPool& pool, std::uint32_t owner);

  std::uint64_t size_bytes() const override { return size_; }
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop = {}) override;
  Result<std::size_t> read_newest(std::uint64_t offset, MutableBytes into, const engine::Stop& stop = {}) override;
  // Not of levels: the kernel is not told of their changes.
  bool may_cache() const override { return inside_->may_cache(); }

 private:
  ZarrChunk(const geometry::Geometry& geometry, const geometry::Coord& extent, std::unique_ptr<View> inside);
  Result<std::size_t> read_padded(std::uint64_t offset, MutableBytes into, bool newest, const engine::Stop& stop);

  const geometry::PaddedBox extent_;
  const std::uint64_t size_;
  const std::unique_ptr<View> inside_;  // the part inside the image
};

}  // namespace mdfs::views
