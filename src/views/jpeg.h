// JPEG: encodes samples row by row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "views/encoder.h"
#include "views/raster.h"

namespace mdfs::views {

inline constexpr std::uint32_t kMaxJpegSide = 65500;
// Of libjpeg, 0 to 100.
inline constexpr int kJpegQuality = 90;

// No more bytes than this come out, however badly the samples compress.
std::uint64_t max_jpeg_bytes(const Raster& raster);
// 1 channel is grey, 3 are RGB, of 8 bits. Baseline, at kJpegQuality, colours at the full resolution. Memory: some
// rows. An error of `rows` or `sink` ends the encoding and is returned. A raster that JPEG cannot hold aborts.
Status encode_jpeg(const Raster& raster, const RowSource& rows, const ByteSink& sink);

}  // namespace mdfs::views
