// PNG: encodes samples row by row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "views/encoder.h"
#include "views/raster.h"

namespace mdfs::views {

inline constexpr std::uint32_t kMaxPngSide = 0x7FFFFFFF;

// No more bytes than this come out, however badly the samples compress.
std::uint64_t max_png_bytes(const Raster& raster);
// 1 channel is grey, 2 grey and alpha, 3 RGB, 4 RGBA; 8 or 16 bits. Memory: some rows and what deflate needs. An error
// of `rows` or `sink` ends the encoding and is returned. A raster that PNG cannot hold aborts.
Status encode_png(const Raster& raster, const RowSource& rows, const ByteSink& sink);

}  // namespace mdfs::views
