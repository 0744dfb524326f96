// Oblique cuts: planes of samples in any direction through a volume, interpolated between the samples of the volume.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::geometry {

// Sample (column, row) of the cut lies at origin + row * v + column * u, in samples along x, y and z.
struct Cut {
  std::array<double, 3> origin{}, u{}, v{};  // along x, y, z; finite
  std::uint64_t width = 0, height = 0;       // samples, 1 or more
  bool nearest = false;                      // else trilinear
  bool operator==(const Cut&) const = default;
};
// A cut through the axes x, y and z of an image; the window has one index along each other axis, and the channel.
struct CutPlane {
  Cut cut;
  Window window;
  bool operator==(const CutPlane&) const = default;
};
// kInvalidArgument: the image has no axes x, y and z, or the cut no samples. kOutOfRange: an index or the channel is
// not in the image. kTooBig: more than kMaxImageBytes. The functions below need a plane that has passed this check.
Status check(const Geometry& geometry, const CutPlane& plane);
std::uint64_t cut_bytes(const Geometry& geometry, const CutPlane& plane);

// Samples [first, last) of a cut.
struct CutTile {
  std::uint64_t first_column = 0, last_column = 0, first_row = 0, last_row = 0;
  std::uint64_t samples() const { return (last_column - first_column) * (last_row - first_row); }
};
CutTile whole(const Cut& cut);

// The smallest window with all samples of the volume that samples of the cut are made from. Empty: all are outside.
std::optional<Window> window_around(const Geometry& geometry, const CutPlane& plane);

// The samples of one extent that a tile is made from, and those between them.
struct CutPiece {
  Coord extent{};
  Window window;  // of all channels
};
// All pieces of a tile, in row-major order of the extents.
std::vector<CutPiece> cut_pieces(const Geometry& geometry, const CutPlane& plane, const CutTile& tile);

// Fills `into` with the samples of a tile. `samples` has those of its pieces, one piece after another, little endian.
// A sample whose position is not in 0..n-1 along each axis of n samples is zero. Trilinear: interpolates along x, then
// y, then z, as a * (1 - f) + b * f in f64; neighbours of weight zero do not count, and a position on a sample has its
// bits. Integers are rounded to the nearest, halves to even. Nearest: floor(position + 1/2).
void fill_cut(const Geometry& geometry, const CutPlane& plane, const CutTile& tile, const std::vector<CutPiece>& pieces,
              ConstBytes samples, MutableBytes into);

}  // namespace mdfs::geometry
