// Arrays of image files, and the images they become.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

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

struct LengthUnit {
  std::string_view name;
  double cm;
};
constexpr std::array kLengthUnits = {
    LengthUnit{"m", 100},        LengthUnit{"cm", 1},         LengthUnit{"mm", 0.1},  LengthUnit{"um", 1e-4},
    LengthUnit{"\u00b5m", 1e-4}, LengthUnit{"\u03bcm", 1e-4}, LengthUnit{"nm", 1e-7}, LengthUnit{"in", 2.54},
};

// Along the axis of that name; 0 if it is not known.
double samples_per_cm(const geometry::Geometry& geometry, char name) {
  const std::size_t axis = geometry.axes.find(name);
  if (axis >= geometry.rank || geometry.spacing[axis] <= 0) return 0;
  const auto* const unit = std::find_if(kLengthUnits.begin(), kLengthUnits.end(),
                                        [&](const LengthUnit& row) { return row.name == geometry.unit[axis]; });
  return unit == kLengthUnits.end() ? 0 : 1 / (geometry.spacing[axis] * unit->cm);
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

void set_resolution(ArrayInfo& array, const geometry::Geometry& geometry) {
  std::string_view axes = array.axes;
  if (axes.ends_with('c')) axes.remove_suffix(1);
  if (axes.size() < 2) return;
  array.rows_per_cm = samples_per_cm(geometry, axes[axes.size() - 2]);
  array.columns_per_cm = samples_per_cm(geometry, axes.back());
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
  set_resolution(array, geometry);
  return array;
}

}  // namespace mdfs::imagefile
