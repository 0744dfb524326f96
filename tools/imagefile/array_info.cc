// Arrays of image files, and the images they become.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/checked.h"
#include "geometry/shape_text.h"
#include "geometry/units.h"
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

// Of a distance the unit in which it is a number that people read easily.
std::string_view unit_for(double cm) {
  constexpr double kMostNm = 1e-6, kMostUm = 0.1, kMostMm = 10;
  return cm < kMostNm ? "nm" : cm < kMostUm ? "um" : cm < kMostMm ? "mm" : "m";
}

// The distance of samples of which there are so many in a centimetre, with as few digits as the error allows: a file
// that was written from a spacing of 0.3um gives back 0.3um, though 33333.3 is not all of what there was.
double shortest_distance(double per_cm, double error, double unit_cm) {
  constexpr int kMostDigits = 15;
  const double exact = 1 / (per_cm * unit_cm);
  for (int digits = 1; digits < kMostDigits; ++digits) {
    const double rounded = std::strtod(fmt::format("{:.{}e}", exact, digits - 1).c_str(), nullptr);
    if (std::abs(1 / (rounded * unit_cm) - per_cm) <= error) return rounded;
  }
  return exact;
}

// Frames are apart in time, so the resolution of a picture does not apply to their axis.
void set_spacing(geometry::Geometry& geometry, unsigned axis, double per_cm, double error) {
  if (per_cm <= 0 || geometry.axes[axis] == 't') return;
  const std::string_view unit = unit_for(1 / per_cm);
  constexpr double kFloatError = 2e-7;  // of numbers that have been float several times
  geometry.spacing[axis] = shortest_distance(per_cm, error + kFloatError * per_cm, geometry::centimetres(unit));
  geometry.unit[axis] = unit;
}

// Along the axis of that name; 0 if it is not known.
double samples_per_cm(const geometry::Geometry& geometry, char name) {
  const std::size_t axis = geometry.axes.find(name);
  if (axis >= geometry.rank || geometry.spacing[axis] <= 0) return 0;
  const double unit_cm = geometry::centimetres(geometry.unit[axis]);
  return unit_cm == 0 ? 0 : 1 / (geometry.spacing[axis] * unit_cm);
}

}  // namespace

bool is_alike(const ArrayInfo& a, const ArrayInfo& b) {
  return a.lengths == b.lengths && a.type == b.type && a.axes == b.axes;
}

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

bool needs_big_tiff(const ArrayInfo& array) {
  constexpr std::uint64_t kClassicBytes = std::uint64_t{1} << 32;
  constexpr std::uint64_t kPageBytes = 4096, kRowBytes = 24;  // directories, and lists of strips, with room to spare
  const std::size_t rank = array.lengths.size() - (array.axes.ends_with('c') ? 1 : 0);
  const auto bytes = array_bytes(array);
  if (!bytes.ok() || rank < 2) return true;
  const std::uint64_t pages = rank > 2 ? array.lengths[0] : 1;
  const std::uint64_t incompressible = *bytes + *bytes / 256;
  const auto of_pages = checked_mul(pages, kPageBytes);
  const auto rows = checked_mul(pages, array.lengths[rank - 2]);
  const auto of_rows = rows ? checked_mul(*rows, kRowBytes) : std::nullopt;
  if (!of_pages || !of_rows) return true;
  const auto both = checked_add(*of_pages, *of_rows);
  const auto all = both ? checked_add(*both, incompressible) : std::nullopt;
  return !all || *all >= kClassicBytes;
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
      return Error{Errc::kBadData, fmt::format("{} channels: 1 to {} are allowed", array.lengths.back(), kMaxChannels)};
    geometry.channels = static_cast<unsigned>(array.lengths.back());
  }
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    geometry.shape[axis] = array.lengths[axis];
    if (axis > 0 && array.lengths[axis] == 0)
      return Error{Errc::kBadData, fmt::format("shape {}: only the slowest axis may have length 0",
                                               tools::format_shape(array.lengths))};
  }
  MDFS_TRY(array_bytes(array));
  if (geometry.rank >= 2) {
    set_spacing(geometry, geometry.rank - 2, array.rows_per_cm, array.resolution_error);
    set_spacing(geometry, geometry.rank - 1, array.columns_per_cm, array.resolution_error);
  }
  const bool as_in_file = !array.axes.empty() && (wanted_axes.empty() || wanted_axes[0] == array.axes[0]);
  if (array.first_spacing > 0 && as_in_file && geometry.rank > 2) {
    geometry.spacing[0] = array.first_spacing;
    geometry.unit[0] = array.first_unit;
  }
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
