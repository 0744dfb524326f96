// Chunks of the array under ome.zarr/ of an image with a codec: the frame of one extent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "geometry/geometry.h"
#include "views/view.h"
#include "volume/volume.h"

namespace mdfs::views {

// The stored frame, unmodified; null if the extent is not stored as one frame now (Volume::pin_frame), or is one of a
// level that cannot be read: a reader of its samples gets them all the same. The view keeps its frame, in spite of
// later writes.
Result<std::shared_ptr<View>> open_stored_chunk(volume::Volume& volume, volume::Ino image, unsigned level,
                                                const geometry::Coord& extent, const engine::Stop& stop);

// The decoded chunk in a frame that is not compressed. Its size is known without the chunk. Any thread.
class PlainChunk final : public View {
 public:
  explicit PlainChunk(std::unique_ptr<View> decoded);
  std::uint64_t size_bytes() const override { return size_; }
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop = {}) override;
  Result<std::size_t> read_newest(std::uint64_t offset, MutableBytes into, const engine::Stop& stop = {}) override;

 private:
  Result<std::size_t> read_frame(std::uint64_t offset, MutableBytes into, bool newest, const engine::Stop& stop);

  const std::unique_ptr<View> decoded_;
  const std::uint64_t size_;
};

}  // namespace mdfs::views
