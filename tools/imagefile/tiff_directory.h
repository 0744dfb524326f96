// Checks that everything in a TIFF file (classic or BigTIFF, either byte order) that its directories name is there.
// libtiff and OpenImageIO read a truncated file as one with fewer pages, and missing strips as zeros.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "imagefile/byte_source.h"

namespace mdfs::imagefile {

// Values of a field of a page.
struct TiffField {
  std::uint64_t value_bytes = 0;  // of one value
  std::uint64_t count = 0;
  std::uint64_t at = 0;  // where the first value lies in the file
};

// How the samples of a page lie in the file. Numbers are those of TIFF 6.0.
struct TiffLayout {
  std::uint64_t width = 0, length = 0, samples = 1;
  std::uint64_t bits = 1, sample_format = 1;
  bool uniform = true;    // all samples of a pixel have these bits and this format
  bool has_bits = false;  // the page has a field of bits; without one they are 1
  std::uint64_t compression = 1, predictor = 1, photometric = 1, fill_order = 1;
  bool separate = false;               // each of several samples of a pixel has strips or tiles of its own
  bool tiled = false;                  // chunks are tiles, else strips
  std::uint64_t across = 0, down = 0;  // of a chunk; the lowest strip may have fewer rows
  std::uint64_t chunks_across = 0, chunks_down = 0, chunks = 0;
  std::uint64_t row_bytes = 0;  // of a row of a chunk, decoded
  TiffField offsets, counts;    // of the chunks: row by row, plane by plane
  TiffField colours;            // of a palette: all red ones, all green ones, all blue ones; count 0: none
};

struct TiffChunk {
  std::uint64_t at = 0, length = 0;
};

// Bytes of the parts of a directory: the number of its fields, a field, and an offset in it.
struct TiffForm {
  std::size_t count, field, offset;
};
constexpr TiffForm tiff_form(bool wide) { return wide ? TiffForm{8, 20, 8} : TiffForm{2, 12, 4}; }

struct TiffFile {
  std::uint64_t pages = 0;
  std::vector<std::uint64_t> directories;  // where that of each page lies
  bool big_endian = false, wide = false;   // wide: BigTIFF
  bool inks = false;                       // of the first page: CMYK
  bool palette = false;                    // of any page
  // Of the first page: samples of a pixel, and the resolution with its unit (1: none, 2: inch, 3: cm).
  std::uint64_t samples = 1, resolution_unit = 2;
  std::uint64_t page_samples = 0;  // of the first page in all; 0: beyond 64 bits
  double x_resolution = 0, y_resolution = 0;
  std::string description;  // at most kMaxDescriptionBytes of it
};

inline constexpr std::size_t kMaxDescriptionBytes = 16u << 20;
inline constexpr std::uint64_t kMaxPages = 1'000'000;

bool is_tiff(ConstBytes start);

// Walks all directories. Refuses a file in which any directory, value, strip or tile is missing, lies beyond the end or
// holds fewer bytes than its samples take, pages that hold several planes (ImageDepth), pages with more strips or tiles
// than they need, directories that form a loop, and more than kMaxPages. Errors begin with
// `name`. Reads the directories and the lists of strips, no samples; at most a few times the bytes of the file.
Result<TiffFile> parse_tiff(ByteSource& bytes, const std::string& name);

// Of a page of a file that parse_tiff() accepted.
Result<TiffLayout> read_tiff_layout(ByteSource& bytes, const TiffFile& file, std::uint64_t page,
                                    const std::string& name);
// The colours of the palette, 3 bytes each: the highest byte of each value, or the lowest if all values are below 256.
// Only of a page whose palette has u16 values.
Result<ByteVector> read_tiff_palette(ByteSource& bytes, const TiffFile& file, const TiffLayout& layout);
// `count` chunks from `first` on.
Result<std::vector<TiffChunk>> read_tiff_chunks(ByteSource& bytes, const TiffFile& file, const TiffLayout& layout,
                                                std::uint64_t first, std::uint64_t count);

// A field with its values, little endian.
struct TiffValues {
  std::uint16_t tag = 0, type = 0;
  std::uint64_t count = 0;
  ByteVector bytes;
};
// The fields of a directory with these tags, ascending. Passes over what lies outside of the bytes.
Result<std::vector<TiffValues>> read_tiff_values(ByteSource& bytes, const TiffFile& file, std::uint64_t page,
                                                 std::span<const std::uint16_t> tags);
// All fields of a directory; longer ones than `most` bytes are passed over.
Result<std::vector<TiffValues>> read_all_tiff_values(ByteSource& bytes, const TiffFile& file, std::uint64_t page,
                                                     std::uint64_t most);

}  // namespace mdfs::imagefile
