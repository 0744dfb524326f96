// Arrays of image files, and the images they become.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/checked.h"
#include "geometry/shape_text.h"
#include "imagefile/image_file.h"
#include "support/text.h"

namespace mdfs::imagefile {
namespace {

constexpr std::uint64_t kMaxChannels = 65535;

// The order of the array's dimensions: as asked, as the file says, or guessed.
Result<geometry::AxesOrder> axes_order(const ArrayInfo& array, std::string_view wanted) {
  const std::size_t dimensions = array.lengths.size();
  if (wanted.empty() && array.axes.empty()) return geometry::guess_axes(array.lengths);
  MDFS_TRY_ASSIGN(geometry::AxesOrder order, geometry::parse_axes(wanted.empty() ? array.axes : wanted));
  const std::size_t letters = order.axes.size() + (order.channel_axis ? 1 : 0);
  if (letters != dimensions)
    return Error{Errc::kUsage, fmt::format("axes '{}': {} letters for an array of shape {}", wanted, letters,
                                           tools::format_shape(array.lengths))};
  if (order.channel_axis && *order.channel_axis + 1 != dimensions)
    return Error{Errc::kNotSupported, fmt::format("axes '{}': channels (c) must be the last dimension", wanted)};
  return order;
}

}  // namespace

Result<std::uint64_t> array_bytes(const ArrayInfo& array) {
  std::uint64_t bytes = geometry::element_bytes(array.type);
  for (const std::uint64_t length : array.lengths) {
    const auto product = checked_mul(bytes, length);
    if (!product || *product > geometry::kMaxImageBytes)
      return Error{Errc::kTooBig, fmt::format("shape {}: more than {} bytes", tools::format_shape(array.lengths),
                                              geometry::kMaxImageBytes)};
    bytes = *product;
  }
  return bytes;
}

Result<geometry::Geometry> choose_geometry(const ArrayInfo& array, std::string_view wanted_axes) {
  MDFS_TRY_ASSIGN(geometry::AxesOrder order, axes_order(array, wanted_axes));
  geometry::Geometry geometry;
  geometry.type = array.type;
  geometry.axes = std::move(order.axes);
  geometry.rank = static_cast<unsigned>(geometry.axes.size());
  geometry.channels = 1;
  if (order.channel_axis) {
    if (array.lengths.back() < 1 || array.lengths.back() > kMaxChannels)
      return Error{Errc::kInvalidArgument,
                   fmt::format("{} channels: 1 to {} are allowed", array.lengths.back(), kMaxChannels)};
    geometry.channels = static_cast<unsigned>(array.lengths.back());
  }
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    geometry.shape[axis] = array.lengths[axis];
    if (axis > 0 && array.lengths[axis] == 0)
      return Error{Errc::kInvalidArgument,
                   fmt::format("shape {}: only the slowest axis may be 0 long", tools::format_shape(array.lengths))};
  }
  MDFS_TRY(array_bytes(array));
  return geometry;
}

ArrayInfo array_of(const geometry::Geometry& geometry) {
  ArrayInfo array;
  array.type = geometry.type;
  array.axes = geometry.axes;
  array.lengths.assign(geometry.shape.begin(), geometry.shape.begin() + geometry.rank);
  if (geometry.channels > 1) {
    array.lengths.push_back(geometry.channels);
    array.axes += 'c';
  }
  return array;
}

}  // namespace mdfs::imagefile
