// Checks that everything in a TIFF file (classic or BigTIFF, either byte order) that its directories name is there.
// libtiff and OpenImageIO read a truncated file as one with fewer pages, and missing strips as zeros.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "imagefile/byte_source.h"

namespace mdfs::imagefile {

struct TiffFile {
  std::uint64_t pages = 0;
  bool inks = false;     // of the first page: CMYK
  bool palette = false;  // of any page
  // Of the first page: samples of a pixel, and the resolution with its unit (1: none, 2: inch, 3: cm).
  std::uint64_t samples = 1, resolution_unit = 2;
  double x_resolution = 0, y_resolution = 0;
  std::string description;  // at most kMaxDescriptionBytes of it
};

inline constexpr std::size_t kMaxDescriptionBytes = 16u << 20;
inline constexpr std::uint64_t kMaxPages = 1'000'000;

bool is_tiff(ConstBytes start);

// Walks all directories. Refuses a file in which any directory, value, strip or tile is missing, lies beyond the end or
// holds fewer bytes than its samples take, directories that form a loop, and more than kMaxPages. Errors begin with
// `name`. Reads the directories and the lists of strips, no samples; at most a few times the bytes of the file.
Result<TiffFile> parse_tiff(ByteSource& bytes, const std::string& name);

}  // namespace mdfs::imagefile
