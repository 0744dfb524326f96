// OpenEXR pictures without compression: a head of known size, and rows made of the samples of the window.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "geometry/geometry.h"
#include "views/raster.h"

namespace mdfs::views {

// The head names the place of each row; one with more rows is too large for memory.
inline constexpr std::uint64_t kMaxExrSide = 1u << 16;

// Version 2, one part of scan lines, top to bottom. Channels: Y; R, G, B; or R, G, B, A. `type` is kF16 (HALF), kF32
// (FLOAT) or kU32 (UINT). Source: the OpenEXR file layout, openexr.com.
ByteVector exr_head(const Raster& raster, geometry::ElementType type);
// Behind the head: for each row its number, its bytes, and the samples of one channel after another, by name.
std::uint64_t exr_data_bytes(const Raster& raster);

// Makes bytes [offset, offset + into.size()) of the data. Reads whole rows of the window, at most 4 MiB of them at
// a time; at once if `into` has at most 1 MiB, and rows do, too.
Status read_exr(const Raster& raster, std::uint64_t offset, MutableBytes into, const WindowBytes& read);

}  // namespace mdfs::views
