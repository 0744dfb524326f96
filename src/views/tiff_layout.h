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

// The levels in the file of an image that stores so many. A file of strips has none. A file of several pages has those
// that have as many pages.
unsigned levels_in_tiff(const geometry::Geometry& image, unsigned stored);

// What the file is of.
struct TiffContent {
  geometry::Geometry image;
  unsigned levels = 0;              // as levels_in_tiff() returns (else abort)
  std::vector<TiffField> fields{};  // of the first page, beside those that describe the samples; by ascending tag
  std::vector<TiffDirectory> directories{};  // that fields of the first page lead to; other tags than those of `fields`
};

// All of it follows from the content, so that the size is exact at look-up and a part costs as much as its bytes. The
// two fastest axes are a page; the other axes count the pages.
//
//   0           header, 16 bytes
//   16          a directory for each page; the first has its own size. Then those of level 1, of level 2, ..
//   then        values that all directories share: bits and formats of samples
//   then        values of the fields, and the directories that they lead to
//   then        of several pages with levels: where the directories of the levels of each page are, 8 bytes each
//   then        offsets of the blocks of all pages, 8 bytes each; then their sizes; the same for each level
//   data_offset (a multiple of kTiffAlignment) the blocks, uncompressed, little endian: the coarsest level first, the
//               image last
//
// Blocks are tiles with the sides of extents, where those are multiples of 16; tiles over the edge are padded with
// zeros. Else they are strips of whole rows, and the data are the canonical bytes. A page with levels is a Cloud
// Optimized GeoTIFF: a chain of directories by descending size, data by ascending size. Of several pages, each has its
// levels as SubIFDs, as in OME-TIFF.
// Sources: TIFF 6.0; BigTIFF as in libtiff (www.awaresystems.be/imaging/tiff/bigtiff.html); OGC 21-026; Adobe PageMaker
// 6.0 TIFF Technical Notes, 1; OME-TIFF 6.0 (sub-resolutions).
class TiffLayout {
 public:
  // kInvalidArgument: TIFF, or what reads it, cannot hold the image; the error says why. The geometry has passed
  // check().
  static Result<TiffLayout> of(TiffContent content);

  std::uint64_t size_bytes() const { return data_offset_ + data_bytes_; }
  std::uint64_t data_offset() const { return data_offset_; }
  bool is_tiled() const { return pictures_.front().tiled; }
  bool has_levels() const { return levels() > 0; }
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
    std::uint64_t directories = 0;         // where they are in the file
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
  std::uint64_t levels() const { return pictures_.size() - 1; }
  // Are the levels in SubIFDs of the pages, or in the chain of directories, behind the page?
  bool has_sub_levels() const { return has_levels() && pictures_.front().pages > 1; }
  bool is_image(const Picture& picture) const { return &picture == pictures_.data(); }
  std::uint64_t directory_bytes(const Picture& picture) const;  // but of the first one in the file
  std::uint64_t directory_offset(const Picture& picture, std::uint64_t page) const;
  std::uint64_t next_directory(const Picture& picture, std::uint64_t page) const;
  ByteVector header() const;
  ByteVector directory(const Picture& picture, std::uint64_t page) const;
  ByteVector shared_values() const;
  ByteVector field_values() const;

  std::vector<Picture> pictures_;  // the image, then its levels
  std::vector<TiffField> fields_;
  std::vector<TiffDirectory> field_directories_;
  std::uint64_t first_directory_bytes_ = 0, page_directory_bytes_ = 0, level_directory_bytes_ = 0;
  std::uint64_t shared_offset_ = 0, fields_offset_ = 0, fields_bytes_ = 0, sub_levels_offset_ = 0;
  std::uint64_t data_offset_ = 0, data_bytes_ = 0;
};

inline constexpr std::uint64_t kTiffAlignment = 4096;
// Bounds of readers: pages that libtiff 4.4 counts, sides that fit a signed number, channels.
inline constexpr std::uint64_t kMaxTiffPages = 65535, kMaxTiffSide = 0x7FFFFFFF;
inline constexpr unsigned kMaxTiffChannels = 1024;

}  // namespace mdfs::views
