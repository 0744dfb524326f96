// The places of everything in NAME.tif, the BigTIFF file of an image.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "geometry/geometry.h"
#include "views/tiff_field.h"

namespace mdfs::views {

// Steps along all axes but the last two.
std::uint64_t tiff_pages(const geometry::Geometry& image);

// The levels in the file of an image that stores so many: all or none. A file of several pages or of strips has none.
unsigned levels_in_tiff(const geometry::Geometry& image, unsigned stored);

// What the file is of.
struct TiffContent {
  geometry::Geometry image;
  unsigned levels = 0;              // as levels_in_tiff() returns (else abort)
  std::vector<TiffField> fields{};  // of the first page, beside those that describe the samples; by ascending tag
};

// All of it follows from the content, so that the size is exact at look-up and a part costs as much as its bytes. The
// two fastest axes are a page; the other axes count the pages.
//
//   0           header, 16 bytes
//   16          a directory for each page, then for each level; the first has its own size, all others have one
//   then        values that all directories share: bits and formats of samples
//   then        values of the fields
//   then        offsets of the blocks of all pages, 8 bytes each; then their sizes; the same for each level
//   data_offset (a multiple of kTiffAlignment) the blocks, uncompressed, little endian: the coarsest level first, the
//               image last
//
// Blocks are tiles with the sides of extents, where those are multiples of 16; tiles over the edge are padded with
// zeros. Else they are strips of whole rows, and the data are the canonical bytes. With levels the file is a Cloud
// Optimized GeoTIFF: directories by descending size, data by ascending size.
// Sources: TIFF 6.0; BigTIFF as in libtiff (www.awaresystems.be/imaging/tiff/bigtiff.html); OGC 21-026.
class TiffLayout {
 public:
  // kInvalidArgument: TIFF, or what reads it, cannot hold the image; the error says why. The geometry has passed
  // check().
  static Result<TiffLayout> of(TiffContent content);

  std::uint64_t size_bytes() const { return data_offset_ + data_bytes_; }
  std::uint64_t data_offset() const { return data_offset_; }
  bool is_tiled() const { return pictures_.front().tiled; }
  bool has_levels() const { return pictures_.size() > 1; }
  // Where the data of the image begin, behind those of its levels.
  std::uint64_t image_offset() const { return data_offset_ + pictures_.front().data; }
  // Fills bytes [offset, offset + into.size()), which end at data_offset() at most.
  void fill_head(std::uint64_t offset, MutableBytes into) const;

  // The data at `offset` behind data_offset(): samples of a window, from one block or from many whole pages of strips.
  struct Part {
    geometry::Window window;   // in samples of the level
    std::uint64_t offset = 0;  // in the bytes of the block, which are padded if it is a tile
    std::uint64_t bytes = 0;   // of the block behind `offset`
    unsigned level = 0;        // 0: the image
  };
  Part part_at(std::uint64_t offset) const;
  // Of the tile that a part is of: rows, and bytes of a row, with padding.
  std::uint64_t tile_rows(const Part& part) const { return pictures_[part.level].block_rows; }
  std::uint64_t tile_row_bytes(const Part& part) const { return pictures_[part.level].row_bytes(); }
  const geometry::Geometry& geometry() const { return pictures_.front().geometry; }

 private:
  // The image or a level.
  struct Picture {
    geometry::Geometry geometry;
    bool tiled = false;
    std::uint64_t width = 0, height = 0, pages = 0;
    std::uint64_t tile_width = 0;  // of strips: the width
    std::uint64_t block_rows = 0;
    std::uint64_t blocks_across = 0, blocks_per_page = 0;
    std::uint64_t directory = 0;           // number of its first directory
    std::uint64_t offsets = 0, sizes = 0;  // where they are in the file
    std::uint64_t data = 0;                // behind data_offset_

    std::uint64_t blocks() const { return pages * blocks_per_page; }
    std::uint64_t row_bytes() const { return tile_width * geometry.sample_bytes(); }
    std::uint64_t block_bytes(std::uint64_t block) const;
    std::uint64_t block_offset(std::uint64_t block) const;  // behind `data`
    std::uint64_t data_bytes() const;
  };
  static Result<Picture> picture_of(const geometry::Geometry& geometry);

  std::uint64_t block_offset(const Picture& picture, std::uint64_t block) const;
  std::uint64_t directory_offset(std::uint64_t number) const;
  ByteVector header() const;
  ByteVector directory(const Picture& picture, std::uint64_t page) const;
  ByteVector shared_values() const;
  std::uint64_t fields_bytes() const;
  ByteVector field_values() const;

  std::vector<Picture> pictures_;  // the image, then its levels
  std::vector<TiffField> fields_;
  std::uint64_t directories_ = 0;
  std::uint64_t first_directory_bytes_ = 0, directory_bytes_ = 0, shared_offset_ = 0, fields_offset_ = 0;
  std::uint64_t data_offset_ = 0, data_bytes_ = 0;
};

inline constexpr std::uint64_t kTiffAlignment = 4096;
// Bounds of readers: pages that libtiff 4.4 counts, sides that fit a signed number, channels.
inline constexpr std::uint64_t kMaxTiffPages = 65535, kMaxTiffSide = 0x7FFFFFFF;
inline constexpr unsigned kMaxTiffChannels = 1024;

}  // namespace mdfs::views
