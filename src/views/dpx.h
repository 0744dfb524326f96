// The header of a DPX picture, whose samples follow it as they are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "views/raster.h"

namespace mdfs::views {

inline constexpr std::uint32_t kMaxDpxSide = 0x7FFFFFFF;
// Rows begin at words of 32 bits. Readers disagree on rows that do not end there.
inline constexpr unsigned kDpxRowStep = 4;

// SMPTE 268M, version 2.0, big endian: one element of RGB with 8 or 16 bits, uncompressed, top to bottom. Samples of 16
// bits are big endian.
ByteVector dpx_header(const Raster& raster);

}  // namespace mdfs::views
