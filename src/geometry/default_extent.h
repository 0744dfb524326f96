// Default extent shape and axis names of an image.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "geometry/geometry.h"

namespace mdfs::geometry {

// Bounds of default extents, where sample and image allow them.
inline constexpr std::uint64_t kSmallestDefaultExtentBytes = 48u << 10;
inline constexpr std::uint64_t kLargestDefaultExtentBytes = 256u << 10;

// The extent shape of an image of `shape`, both in samples, slowest axis first. rank 1..5, sample_bytes >= 1 (else
// abort); shape[0] = 0 counts as unknown. An extent has 48..256 KiB, wherever sample and image allow:
// - Pictures get squares with sides that are powers of two, or 3/2 of one.
// - Volumes get flat extents: 32x64x64 u8, 16x64x64 u16, 16x32x64 f32 (reason: doc/DESIGN.md).
// - Sequences of frames (first axis t) get squares of four frames, so that one frame costs little more than itself.
// - Axes before the last three, and before the last axis t or c of others than sequences, get length 1 while the rest
//   is 48 KiB or more (reason: doc/DESIGN.md).
// Along a short axis the extent is the image's length, rounded up to 16 except for the slowest of three axes; the other
// axes then become longer. Space behind the last extent is spread over all extents, so that little padding is stored.
Coord default_extent(unsigned rank, const Coord& shape, std::uint64_t sample_bytes, std::string_view axes);

// The default names of the axes, slowest first: x, yx, zyx, tzyx, tczyx; for a sequence the first is t. With
// interleaved channels no axis is c, and five axes are stzyx. rank 1..5 (else abort).
std::string default_axes(unsigned rank, bool sequence = false, bool interleaved_channels = false);

// The extent of a new image that a caller asks for, with shorter sides along the axes that never grow, all but the
// first: the image's length there, rounded up to 16. What lies behind would be stored as padding. The geometry has
// passed check().
Coord trimmed_extent(const Geometry& geometry);

// Checks a new image that has passed check(): its extents have at least kMinExtentBytes, or hold the whole image. Else
// kInvalidArgument.
inline constexpr std::uint64_t kMinExtentBytes = 64;
Status check_extent(const Geometry& geometry);

}  // namespace mdfs::geometry
