// NAME.tif: the whole image as a BigTIFF whose bytes are computed when they are read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "geometry/geometry.h"
#include "views/view.h"
#include "volume/volume.h"

namespace mdfs::views {

// The places of everything in the file. All of it follows from the shape, so that the size is exact at look-up and a
// part costs as much as its bytes. The two fastest axes are a page; a third axis counts the pages.
//
//   0           header, 16 bytes
//   16          a directory for each page, all of one size
//   then        values that all pages share: bits and formats of samples
//   then        offsets of the blocks of all pages, 8 bytes each; then their sizes
//   data_offset (a multiple of kTiffAlignment) the blocks, uncompressed, little endian
//
// Blocks are tiles with the sides of extents, where those are multiples of 16; tiles over the edge are padded with
// zeros. Else they are strips of whole rows, and the data are the canonical bytes.
// Sources: TIFF 6.0; BigTIFF as in libtiff (www.awaresystems.be/imaging/tiff/bigtiff.html).
class TiffLayout {
 public:
  // kInvalidArgument: TIFF, or what reads it, cannot hold the image; the error says why. The geometry has passed
  // check().
  static Result<TiffLayout> of(const geometry::Geometry& geometry);

  std::uint64_t size_bytes() const { return data_offset_ + data_bytes_; }
  std::uint64_t data_offset() const { return data_offset_; }
  bool is_tiled() const { return tiled_; }
  // Fills bytes [offset, offset + into.size()), which end at data_offset() at most.
  void fill_head(std::uint64_t offset, MutableBytes into) const;

  // The data at `offset` behind data_offset(): samples of a window, from one block or from many whole pages of strips.
  struct Part {
    geometry::Window window;
    std::uint64_t offset = 0;  // in the bytes of the block, which are padded if it is a tile
    std::uint64_t bytes = 0;   // of the block behind `offset`
  };
  Part part_at(std::uint64_t offset) const;
  // A tile as rows of bytes: those that it has, and those that lie inside the image.
  const geometry::Geometry& geometry() const { return geometry_; }
  std::uint64_t tile_rows() const { return block_rows_; }
  std::uint64_t tile_row_bytes() const { return tile_width_ * geometry_.sample_bytes(); }

 private:
  std::uint64_t block_bytes(std::uint64_t block) const;
  std::uint64_t block_offset(std::uint64_t block) const;
  std::uint64_t blocks() const { return pages_ * blocks_per_page_; }
  ByteVector header() const;
  ByteVector directory(std::uint64_t page) const;
  ByteVector shared_values() const;

  geometry::Geometry geometry_;
  bool tiled_ = false;
  std::uint64_t width_ = 0, height_ = 0, pages_ = 0;
  std::uint64_t tile_width_ = 0;  // of strips: the width
  std::uint64_t block_rows_ = 0;
  std::uint64_t blocks_across_ = 0, blocks_per_page_ = 0;
  std::uint64_t directory_bytes_ = 0, shared_offset_ = 0, offsets_offset_ = 0, sizes_offset_ = 0;
  std::uint64_t data_offset_ = 0, data_bytes_ = 0;
};

inline constexpr std::uint64_t kTiffAlignment = 4096;
// Bounds of readers: pages that libtiff 4.4 counts, sides that fit a signed number, channels.
inline constexpr std::uint64_t kMaxTiffPages = 65535, kMaxTiffSide = 0x7FFFFFFF;
inline constexpr unsigned kMaxTiffChannels = 1024;

// One open NAME.tif. A read sees the newest version of each block. Any thread.
class TiffView final : public View {
 public:
  TiffView(volume::Volume& volume, volume::Ino image, TiffLayout layout)
      : volume_(volume), image_(image), layout_(std::move(layout)) {}

  std::uint64_t size_bytes() const override { return layout_.size_bytes(); }
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop = {}) override;
  bool may_cache() const override { return true; }

 private:
  Status read_part(const TiffLayout::Part& part, MutableBytes into, const engine::Stop& stop);

  volume::Volume& volume_;
  const volume::Ino image_;
  const TiffLayout layout_;
};

}  // namespace mdfs::views
