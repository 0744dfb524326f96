// The rules of a geometry, and the windows inside it.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/checked.h"
#include "base/text.h"

namespace mdfs::geometry {
namespace {

// Keys of the extent table number the places of pages, and strips of a page, in 64 bits.
constexpr std::uint64_t kMaxPages = std::uint64_t{1} << 56;

struct TypeRow {
  ElementType type;
  unsigned bytes;
  std::string_view name;
  std::string_view numpy_descr;
};

constexpr std::array kTypes = {
    TypeRow{ElementType::kU8, 1, "u8", "|u1"},   TypeRow{ElementType::kU16, 2, "u16", "<u2"},
    TypeRow{ElementType::kU32, 4, "u32", "<u4"}, TypeRow{ElementType::kU64, 8, "u64", "<u8"},
    TypeRow{ElementType::kI8, 1, "i8", "|i1"},   TypeRow{ElementType::kI16, 2, "i16", "<i2"},
    TypeRow{ElementType::kI32, 4, "i32", "<i4"}, TypeRow{ElementType::kI64, 8, "i64", "<i8"},
    TypeRow{ElementType::kF16, 2, "f16", "<f2"}, TypeRow{ElementType::kF32, 4, "f32", "<f4"},
    TypeRow{ElementType::kF64, 8, "f64", "<f8"},
};

constexpr bool types_are_in_order() {
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    if (static_cast<std::size_t>(kTypes[i].type) != i + 1) return false;
  return true;
}
static_assert(types_are_in_order());

bool known(ElementType type) {
  const auto i = static_cast<std::size_t>(type);
  return i >= 1 && i <= kTypes.size();
}

const TypeRow& row(ElementType type) {
  MDFS_CHECK(known(type));
  return kTypes[static_cast<std::size_t>(type) - 1];
}

std::string axis_label(const Geometry& geometry, unsigned axis) {
  if (axis < geometry.axes.size()) return fmt::format("axis {}", geometry.axes[axis]);
  return fmt::format("axis {}", axis);
}

Status check_axes(const Geometry& geometry) {
  if (geometry.axes.size() != geometry.rank)
    return Error{Errc::kInvalidArgument,
                 fmt::format("{} axis names \"{}\" for rank {}", geometry.axes.size(), geometry.axes, geometry.rank)};
  for (std::size_t i = 0; i < geometry.axes.size(); ++i) {
    const char letter = geometry.axes[i];
    if (!is_axis_letter(letter))
      return Error{Errc::kInvalidArgument,
                   fmt::format("an axis name must be a lower-case letter other than l, not \"{}\"", letter)};
    if (geometry.axes.find(letter, i + 1) != std::string::npos)
      return Error{Errc::kInvalidArgument, fmt::format("axis {} is named twice in \"{}\"", letter, geometry.axes)};
    if (letter == 'c' && i + 1 == geometry.axes.size())
      return Error{Errc::kInvalidArgument, fmt::format("\"{}\": the last axis cannot be c", geometry.axes)};
    if (letter == 'c' && geometry.channels > 1)
      return Error{
          Errc::kInvalidArgument,
          fmt::format("{} interleaved channels and an axis c: an image has one or the other", geometry.channels)};
  }
  return {};
}

// The product of lengths along the axes from `first` on, times sample_bytes.
std::optional<std::uint64_t> product(unsigned first, unsigned rank, const Coord& lengths, std::uint64_t sample_bytes) {
  std::optional<std::uint64_t> bytes = sample_bytes;
  for (unsigned axis = rank; axis > first && bytes; --axis) bytes = checked_mul(*bytes, lengths[axis - 1]);
  return bytes;
}

Status check_sizes(const Geometry& geometry) {
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    if (axis > 0 && geometry.shape[axis] == 0)
      return Error{Errc::kInvalidArgument, fmt::format("{} has length 0", axis_label(geometry, axis))};
    if (geometry.extent[axis] == 0)
      return Error{Errc::kInvalidArgument, fmt::format("the extent has length 0 along {}", axis_label(geometry, axis))};
  }
  const auto extent = product(0, geometry.rank, geometry.extent, geometry.sample_bytes());
  if (!extent || *extent > kMaxExtentBytes)
    return Error{Errc::kTooBig, fmt::format("an extent must hold at most {} bytes", kMaxExtentBytes)};
  const auto slab = product(1, geometry.rank, geometry.shape, geometry.sample_bytes());
  const auto size = product(0, geometry.rank, geometry.shape, geometry.sample_bytes());
  if (!slab || *slab > kMaxImageBytes || !size || *size > kMaxImageBytes)
    return Error{Errc::kTooBig, "an image must hold at most 2^62 bytes"};
  if (geometry.rank > 1 && checked_mul(*slab, geometry.extent[0]).value_or(UINT64_MAX) > kMaxImageBytes)
    return Error{Errc::kTooBig,
                 fmt::format("extents of {} samples along {}: {} at most, so that a row of extents is 2^62 bytes",
                             geometry.extent[0], axis_label(geometry, 0), kMaxImageBytes / *slab)};
  const std::uint64_t least = std::max(*slab, *size);
  if (least > max_bytes(geometry))
    return Error{Errc::kTooBig, fmt::format("{} bytes in extents of {}: must be at most {}; larger extents allow more",
                                            least, *extent, max_bytes(geometry))};
  return {};
}

Status check_spacing(const Geometry& geometry) {
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    const double spacing = geometry.spacing[axis];
    if (!std::isfinite(spacing) || spacing < 0)
      return Error{Errc::kInvalidArgument,
                   fmt::format("the spacing along {} must be a positive number", axis_label(geometry, axis))};
    const std::string& unit = geometry.unit[axis];
    if (unit.size() > kMaxUnitBytes || !is_one_line(unit))
      return Error{Errc::kInvalidArgument,
                   fmt::format("the unit along {}: at most {} bytes of UTF-8 without control characters are allowed",
                               axis_label(geometry, axis), kMaxUnitBytes)};
  }
  return {};
}

Coord ceil_grid(unsigned rank, const Coord& shape, const Coord& extent) {
  Coord grid{};
  for (unsigned axis = 0; axis < rank; ++axis) grid[axis] = ceil_div(shape[axis], extent[axis]);
  return grid;
}

}  // namespace

unsigned element_bytes(ElementType type) { return row(type).bytes; }
std::string_view name(ElementType type) { return row(type).name; }
std::string_view numpy_descr(ElementType type) { return row(type).numpy_descr; }

Result<ElementType> parse_element_type(std::string_view text) {
  for (const TypeRow& candidate : kTypes)
    if (candidate.name == text) return candidate.type;
  std::string names;
  for (const TypeRow& candidate : kTypes) names += fmt::format(" {}", candidate.name);
  return Error{Errc::kInvalidArgument, fmt::format("element type \"{}\" is none of{}", text, names)};
}

std::uint64_t Geometry::slab_bytes() const {
  std::uint64_t bytes = sample_bytes();
  for (unsigned axis = 1; axis < rank; ++axis) bytes *= shape[axis];
  return bytes;
}

std::uint64_t Geometry::size_bytes() const { return rank == 0 ? 0 : slab_bytes() * shape[0]; }

std::uint64_t Geometry::extent_bytes() const {
  std::uint64_t bytes = sample_bytes();
  for (unsigned axis = 0; axis < rank; ++axis) bytes *= extent[axis];
  return bytes;
}

std::uint64_t max_bytes(const Geometry& geometry) {
  const std::uint64_t slab = geometry.slab_bytes();
  std::uint64_t bytes = kMaxImageBytes / slab * slab;
  if (geometry.rank < 2) return bytes;
  // As if each extent had a page of its own.
  std::uint64_t pages_in_row = 1;
  for (unsigned axis = 1; axis < geometry.rank; ++axis)
    pages_in_row =
        checked_mul(pages_in_row, ceil_div(geometry.shape[axis], geometry.extent[axis])).value_or(UINT64_MAX);
  const std::uint64_t rows = kMaxPages / pages_in_row;
  return std::min(bytes, checked_mul(rows, slab * geometry.extent[0]).value_or(bytes));
}

Coord Geometry::grid() const { return ceil_grid(rank, shape, extent); }

std::uint64_t extent_count(unsigned rank, const Coord& grid) {
  std::uint64_t count = 1;
  for (unsigned axis = 0; axis < rank; ++axis)
    count = checked_mul(count, grid[axis]).value_or(std::numeric_limits<std::uint64_t>::max());
  return count;
}

bool in_grid(unsigned rank, const Coord& grid, const Coord& extent) {
  for (unsigned axis = 0; axis < rank; ++axis)
    if (extent[axis] >= grid[axis]) return false;
  return true;
}

bool is_axis_letter(char letter) { return letter >= 'a' && letter <= 'z' && letter != 'l'; }

Status check(const Geometry& geometry) {
  if (geometry.rank < 1 || geometry.rank > kMaxRank)
    return Error{Errc::kInvalidArgument, fmt::format("rank {} is not in 1..{}", geometry.rank, kMaxRank)};
  if (geometry.channels < 1 || geometry.channels > kMaxChannels)
    return Error{Errc::kInvalidArgument, fmt::format("{} channels: must be 1..{}", geometry.channels, kMaxChannels)};
  if (!known(geometry.type)) return Error{Errc::kInvalidArgument, "unknown element type"};
  if (static_cast<unsigned>(geometry.codec) >= kCodecs) return Error{Errc::kInvalidArgument, "unknown codec"};
  if (static_cast<unsigned>(geometry.policy) >= kAllocationPolicies)
    return Error{Errc::kInvalidArgument, "unknown allocation policy"};
  if (geometry.codec_level < kMinCodecLevel || geometry.codec_level > kMaxCodecLevel)
    return Error{Errc::kInvalidArgument,
                 fmt::format("codec level {} is not in {}..{}", geometry.codec_level, kMinCodecLevel, kMaxCodecLevel)};
  MDFS_TRY(check_axes(geometry));
  MDFS_TRY(check_sizes(geometry));
  return check_spacing(geometry);
}

Window whole(const Geometry& geometry) {
  Window window;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) window.length[axis] = geometry.shape[axis];
  return window;
}

Window window_of_extent(const Geometry& geometry, const Coord& extent) {
  Window window;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    window.start[axis] = extent[axis] * geometry.extent[axis];
    MDFS_CHECK(window.start[axis] < geometry.shape[axis]);
    window.length[axis] = std::min(geometry.extent[axis], geometry.shape[axis] - window.start[axis]);
  }
  return window;
}

Status check(const Geometry& geometry, const Window& window) {
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    const std::string label = axis_label(geometry, axis);
    const std::uint64_t shape = geometry.shape[axis];
    if (shape == 0) return Error{Errc::kOutOfRange, fmt::format("the image is empty along {}", label)};
    if (window.length[axis] == 0)
      return Error{Errc::kInvalidArgument, fmt::format("the window has length 0 along {}", label)};
    if (!inside(window.start[axis], window.length[axis], shape))
      return Error{Errc::kOutOfRange, fmt::format("{}+{} along {} is outside of 0+{}", window.start[axis],
                                                  window.length[axis], label, shape)};
    if (window.single[axis] && window.length[axis] != 1)
      return Error{Errc::kInvalidArgument, fmt::format("a single index along {} must have length 1", label)};
  }
  if (window.channel && *window.channel >= geometry.channels)
    return Error{Errc::kOutOfRange, fmt::format("channel {} is not in 0..{}", *window.channel, geometry.channels - 1)};
  return {};
}

std::uint64_t window_bytes(const Geometry& geometry, const Window& window) {
  std::uint64_t bytes = window.channel ? element_bytes(geometry.type) : geometry.sample_bytes();
  for (unsigned axis = 0; axis < geometry.rank; ++axis) bytes *= window.length[axis];
  return bytes;
}

std::vector<std::uint64_t> array_shape(const Geometry& geometry, const Window& window) {
  std::vector<std::uint64_t> shape;
  for (unsigned axis = 0; axis < geometry.rank; ++axis)
    if (!window.single[axis]) shape.push_back(window.length[axis]);
  if (geometry.channels > 1 && !window.channel) shape.push_back(geometry.channels);
  return shape;
}

}  // namespace mdfs::geometry
