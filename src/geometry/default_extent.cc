// The one place where default extent shapes are decided.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/default_extent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"
#include "base/checked.h"

namespace mdfs::geometry {
namespace {

// What benchmarks may change: the most bytes of an extent by kind of image, and how many frames deep it is.
constexpr std::uint64_t kSignalBytes = 128u << 10;
constexpr std::uint64_t kPictureBytes = kLargestDefaultExtentBytes;
constexpr std::uint64_t kPictureSide = 256;  // 256x256x3 u8 is 192 KiB, 256x256 u8 64 KiB. Why: doc/DESIGN.md
constexpr std::uint64_t kVolumeBytes = 128u << 10;
constexpr std::uint64_t kVolumePlaneWeight = 4;
constexpr std::uint64_t kSequenceBytes = kLargestDefaultExtentBytes;
constexpr std::uint64_t kSequenceFrames = 4;
constexpr std::uint64_t kSideUnit = 16;

std::uint64_t power(std::uint64_t side, unsigned axes) {
  std::uint64_t product = 1;
  for (unsigned i = 0; i < axes; ++i) product *= side;
  return product;
}

// The largest power of two, `most` at most, whose square (cube) of samples fits; 3/2 of it where that would be a small
// extent.
std::uint64_t equal_side(unsigned axes, std::uint64_t sample_bytes, std::uint64_t most_bytes, std::uint64_t most) {
  const std::uint64_t samples = std::max<std::uint64_t>(1, most_bytes / sample_bytes);
  std::uint64_t side = 1;
  while (side * 2 <= most && power(side * 2, axes) <= samples) side *= 2;
  const std::uint64_t wider = side + side / 2;
  if (power(side, axes) * sample_bytes < kSmallestDefaultExtentBytes && power(wider, axes) <= samples) return wider;
  return side;
}

std::uint64_t bytes_of(unsigned rank, const Coord& extent, std::uint64_t sample_bytes) {
  std::uint64_t bytes = sample_bytes;
  for (unsigned axis = 0; axis < rank; ++axis) bytes *= extent[axis];
  return bytes;
}

// Extents along the slowest of three axes have any length, the others multiples of 16.
std::uint64_t unit_of(unsigned rank, unsigned axis) { return rank == 3 && axis == 0 ? 1 : kSideUnit; }

// A plane reads as many times its bytes as the extent is long across it. Powers of two with the least mean of these,
// where planes xy count kVolumePlaneWeight times; among equals the shortest along x, then along y. Why: doc/DESIGN.md
Coord volume_sides(std::uint64_t sample_bytes) {
  const std::uint64_t samples = std::bit_floor(std::max<std::uint64_t>(1, kVolumeBytes / sample_bytes));
  Coord best{1, 1, samples};
  const auto cost = [](const Coord& sides) { return kVolumePlaneWeight * sides[0] + sides[1] + sides[2]; };
  for (std::uint64_t x = 1; x < samples; x *= 2)
    for (std::uint64_t y = 1; y <= std::min(x, samples / x); y *= 2)
      if (const Coord sides{samples / x / y, y, x}; sides[0] <= y && cost(sides) < cost(best)) best = sides;
  return best;
}

// The longest extent of use along each axis.
Coord useful_sides(unsigned rank, const Coord& shape) {
  Coord useful{};
  for (unsigned axis = 0; axis < rank; ++axis) {
    const bool known = shape[axis] > 0 && shape[axis] <= kMaxImageBytes;
    useful[axis] = known ? align_up(shape[axis], unit_of(rank, axis)) : std::numeric_limits<std::uint64_t>::max();
  }
  return useful;
}

// The same number of extents with less padding behind the image's end: 300 samples are two extents of 160, not of 256.
void even_out(unsigned rank, const Coord& shape, unsigned first_axis, Coord& extent) {
  for (unsigned axis = first_axis; axis < rank; ++axis) {
    if (shape[axis] == 0 || extent[axis] < kSideUnit) continue;
    const std::uint64_t even = ceil_div(shape[axis], ceil_div(shape[axis], extent[axis]));
    extent[axis] = std::min(extent[axis], align_up(even, unit_of(rank, axis)));
  }
}

// Cuts the sides to what is of use, then doubles the others, shortest first, while the extent stays within bounds.
void fit(unsigned rank, const Coord& useful, std::uint64_t sample_bytes, std::uint64_t most_bytes, unsigned first_axis,
         Coord& extent) {
  bool cut = false;
  for (unsigned axis = 0; axis < rank; ++axis) {
    cut = cut || useful[axis] < extent[axis];
    extent[axis] = std::min(extent[axis], useful[axis]);
  }
  while (cut && bytes_of(rank, extent, sample_bytes) * 2 <= most_bytes) {
    unsigned shortest = rank;
    for (unsigned axis = rank; axis > first_axis; --axis)
      if (extent[axis - 1] * 2 <= useful[axis - 1] && (shortest == rank || extent[axis - 1] < extent[shortest]))
        shortest = axis - 1;
    if (shortest == rank) return;
    extent[shortest] *= 2;
  }
}

// A row of extents counts as kMaxImageBytes at most: slabs of more than 2^58 bytes have extents that are less deep.
void limit_row(unsigned rank, const Coord& shape, std::uint64_t sample_bytes, Coord& extent) {
  std::uint64_t slab = sample_bytes;
  for (unsigned axis = 1; axis < rank; ++axis)
    slab = checked_mul(slab, std::max<std::uint64_t>(1, shape[axis])).value_or(kMaxImageBytes);
  extent[0] = std::max<std::uint64_t>(1, std::min(extent[0], kMaxImageBytes / slab));
}

// The last axes that make a picture or a volume: three at most, up to the last t or c. All axes of images of three
// axes, unless one is c.
unsigned space_axes(unsigned rank, std::string_view axes) {
  constexpr unsigned kMostSpace = 3;
  if (rank <= kMostSpace && axes.find('c') == std::string_view::npos) return rank;
  if (axes.size() != rank) return std::min(rank, kMostSpace);
  unsigned space = 0;
  while (space < std::min(rank, kMostSpace) && axes[rank - 1 - space] != 't' && axes[rank - 1 - space] != 'c') ++space;
  return space == 0 ? std::min(rank, kMostSpace) : space;
}

// One step along the slower axes of the default extent of the last `space` axes; more while that is small.
Coord single_steps(unsigned rank, const Coord& shape, std::uint64_t sample_bytes, std::string_view axes,
                   unsigned space) {
  const unsigned outer = rank - space;
  Coord space_shape{}, extent{};
  std::copy_n(shape.begin() + outer, space, space_shape.begin());
  const std::string_view names = axes.size() == rank ? axes.substr(outer) : std::string_view{};
  const Coord inner = default_extent(space, space_shape, sample_bytes, names);
  std::copy_n(inner.begin(), space, extent.begin() + outer);
  std::uint64_t bytes = bytes_of(space, inner, sample_bytes);
  for (unsigned axis = outer; axis > 0; --axis) {
    const std::uint64_t most = shape[axis - 1] == 0 ? kMaxImageBytes : shape[axis - 1];
    std::uint64_t& side = extent[axis - 1] = 1;
    while (side < most && bytes < kSmallestDefaultExtentBytes && bytes * 2 <= kLargestDefaultExtentBytes) {
      const std::uint64_t longer = std::min(most, side * 2);
      bytes = bytes / side * longer;
      side = longer;
    }
  }
  return extent;
}

}  // namespace

Coord default_extent(unsigned rank, const Coord& shape, std::uint64_t sample_bytes, std::string_view axes) {
  MDFS_CHECK(rank >= 1 && rank <= kMaxRank && sample_bytes > 0);
  if (const unsigned space = space_axes(rank, axes); space < rank) {
    Coord extent = single_steps(rank, shape, sample_bytes, axes, space);
    limit_row(rank, shape, sample_bytes, extent);
    return extent;
  }
  const bool sequence = rank > 1 && !axes.empty() && axes[0] == 't';
  const std::uint64_t frames = sequence ? kSequenceFrames : 1;
  const unsigned equal_axes = sequence ? rank - 1 : rank;
  const std::uint64_t most = sequence    ? kSequenceBytes
                             : rank == 1 ? kSignalBytes
                             : rank == 2 ? kPictureBytes
                                         : kVolumeBytes;
  const std::uint64_t most_side = rank == 2 && !sequence ? kPictureSide : kMaxImageBytes;
  const std::uint64_t side = equal_side(equal_axes, sample_bytes * frames, most, most_side);
  Coord extent{};
  std::fill_n(extent.begin(), rank, side);
  if (sequence) extent[0] = kSequenceFrames;
  if (rank == 3 && !sequence) extent = volume_sides(sample_bytes);
  fit(rank, useful_sides(rank, shape), sample_bytes, most, sequence ? 1 : 0, extent);
  even_out(rank, shape, sequence ? 1 : 0, extent);
  if (rank > 1) limit_row(rank, shape, sample_bytes, extent);
  return extent;
}

std::string default_axes(unsigned rank, bool sequence, bool interleaved_channels) {
  constexpr std::array<std::string_view, kMaxRank> kNames = {"x", "yx", "zyx", "tzyx", "tczyx"};
  MDFS_CHECK(rank >= 1 && rank <= kMaxRank);
  std::string axes(kNames[rank - 1]);
  if (rank == kMaxRank && interleaved_channels) axes = "stzyx";
  if (sequence && axes.find('t') == std::string::npos) axes[0] = 't';
  return axes;
}

Coord trimmed_extent(const Geometry& geometry) {
  Coord extent = geometry.extent;
  for (unsigned axis = 1; axis < geometry.rank; ++axis)
    if (extent[axis] > geometry.shape[axis])
      extent[axis] = std::min(extent[axis], align_up(geometry.shape[axis], kSideUnit));
  return extent;
}

// Each extent has its record, its blocks and its place in the cache. Images may be smaller; what grows may not.
Status check_extent(const Geometry& geometry) {
  if (geometry.extent_bytes() >= kMinExtentBytes) return {};
  for (unsigned axis = 0; axis < geometry.rank; ++axis)
    if (geometry.extent[axis] < geometry.shape[axis])
      return Error{Errc::kInvalidArgument,
                   fmt::format("extents of {}, {} bytes: must have {} to {} bytes, or hold the whole image",
                               fmt::join(geometry.extent.begin(), geometry.extent.begin() + geometry.rank, "x"),
                               geometry.extent_bytes(), kMinExtentBytes, kMaxExtentBytes)};
  return {};
}

}  // namespace mdfs::geometry
