// One chunk of a Zarr array that a client writes: staged until it is whole, then the extent in one atomic step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "geometry/geometry.h"
#include "views/staged_write.h"
#include "views/staging.h"
#include "volume/volume.h"

namespace mdfs::views {

// One thread at a time.
class ChunkWriter final : public StagedWrite {
 public:
  // Of an extent inside the image (abort). `owner`: the writing user. `truncated`: an empty writer reads as an empty
  // file; else as the present chunk. kTooBig: over the limit of the mount.
  static Result<std::unique_ptr<ChunkWriter>> create(volume::Volume& volume, volume::Ino image,
                                                     const geometry::Geometry& geometry, const geometry::Coord& extent,
                                                     StagingPool& pool, std::uint32_t owner, bool truncated);

  const geometry::Window& window() const override { return window_; }
  Result<std::size_t> write(std::uint64_t offset, ConstBytes from) override;
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into) const override;
  bool overran() const override { return overran_; }
  bool empty() const override { return staging_ == nullptr || staging_->written().empty(); }
  bool is_full() const override;
  bool is_complete() const override { return empty() ? !truncated_ : is_full(); }
  // A chunk is written whole: all samples of the extent, of an image with zstd as one frame of them. Samples outside of
  // the image are dropped. A frame whose other samples are zero becomes the stored frame as it is.
  Status apply(const engine::Stop& stop = {}) override;

  // Of the file that the staged bytes are.
  std::uint64_t size_bytes() const { return staging_ ? staging_->written().end() : 0; }
  // Forgets all staged bytes.
  void clear();

 private:
  ChunkWriter(volume::Volume& volume, volume::Ino image, const geometry::Geometry& geometry,
              const geometry::Coord& extent, StagingPool& pool, std::uint32_t owner, bool truncated);
  bool is_encoded() const { return geometry_.codec != geometry::Codec::kRaw; }
  // `ready`: the frame, if it may be stored as it is.
  Status write_decoded(const engine::WindowSource::Read& decoded, const std::optional<engine::ReadyExtent>& ready,
                       const engine::Stop& stop);
  Status write_frame(const engine::Stop& stop);

  volume::Volume& volume_;
  const volume::Ino image_;
  const geometry::Geometry geometry_;  // of the image when the writer was created
  const geometry::Coord extent_;
  const geometry::Window window_;
  const std::uint64_t capacity_;  // of the largest chunk in bytes
  StagingPool& pool_;
  const std::uint32_t owner_;
  bool truncated_;
  bool overran_ = false;
  std::unique_ptr<Staging> staging_;  // created with the first byte
};

// Makes the samples of the extent zeros, in one atomic step: the chunk becomes a hole. The extent is inside the image
// (abort).
Status remove_chunk(volume::Volume& volume, volume::Ino image, const geometry::Geometry& geometry,
                    const geometry::Coord& extent, const engine::Stop& stop);

}  // namespace mdfs::views
