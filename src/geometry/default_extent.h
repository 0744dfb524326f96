// Default extent shape and axis names of an image.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "geometry/geometry.h"

namespace mdfs::geometry {

inline constexpr std::uint64_t kSmallestDefaultExtentBytes = 48u << 10;
inline constexpr std::uint64_t kLargestDefaultExtentBytes = 256u << 10;

// An extent of 48..256 KiB, wherever sample and image allow: squares with sides that are powers of two (or 3/2 of one),
// in three dimensions cubes, or half cubes where samples are small (reason: doc/DESIGN.md), and for a sequence of
// frames (first axis t) squares of four frames, so that one frame costs little more than itself. Never larger than the
// image needs: along a short axis the extent is the image's length, rounded up to 16 except for the slowest of three
// axes; the other axes then become longer. Space behind the last extent is spread over all extents, so that little
// padding is stored. rank 1..3, sample_bytes >= 1; shape[0] = 0 counts as unknown.
Coord default_extent(unsigned rank, const Coord& shape, std::uint64_t sample_bytes, std::string_view axes);

// x | yx | zyx, or tyx for a sequence.
std::string default_axes(unsigned rank, bool sequence = false);

// Checks a new image that has passed check(): its extents have at least kMinExtentBytes, or hold the whole image.
inline constexpr std::uint64_t kMinExtentBytes = 64;
Status check_extent(const Geometry& geometry);

}  // namespace mdfs::geometry
