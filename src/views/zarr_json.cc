// The metadata of a Zarr group and its array.
// SPDX-License-Identifier: Apache-2.0
#include "views/zarr_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "geometry/level.h"
#include "geometry/units.h"
#include "views/type_names.h"
#include "views/zarr_name.h"

namespace mdfs::views {
namespace {

using geometry::ElementType;
using geometry::Geometry;
using geometry::Reduction;
using OrderedJson = nlohmann::ordered_json;

enum class AxisClass : std::uint8_t { kTime, kOther, kSpace };  // in the order that OME-NGFF demands

AxisClass class_of(const Geometry& geometry, ZarrAxis axis) {
  if (axis.axis == ZarrAxis::kChannels) return AxisClass::kOther;
  const char letter = geometry.axes[axis.axis];
  if (letter == 't') return AxisClass::kTime;
  return geometry::is_space_axis(letter) ? AxisClass::kSpace : AxisClass::kOther;
}

AxisClass class_of(geometry::UnitKind kind) {
  return kind == geometry::UnitKind::kLength ? AxisClass::kSpace : AxisClass::kTime;
}

std::string name_of(const Geometry& geometry, ZarrAxis axis) {
  return axis.axis == ZarrAxis::kChannels ? std::string("c") : std::string(1, geometry.axes[axis.axis]);
}

OrderedJson describe_axis(const Geometry& geometry, ZarrAxis axis) {
  OrderedJson json = {{"name", name_of(geometry, axis)}};
  const AxisClass kind = class_of(geometry, axis);
  if (name_of(geometry, axis) == "c") json["type"] = "channel";
  if (kind == AxisClass::kSpace) json["type"] = "space";
  if (kind == AxisClass::kTime) json["type"] = "time";
  if (axis.axis == ZarrAxis::kChannels || geometry.spacing[axis.axis] == 0) return json;
  const geometry::Unit* const unit = geometry::find_unit(geometry.unit[axis.axis]);
  if (unit != nullptr && kind == class_of(unit->kind)) json["unit"] = unit->name;
  return json;
}

OrderedJson transformation(const std::string& type, std::vector<double> factors) {
  auto json = OrderedJson::object();
  json["type"] = type;
  json[type] = std::move(factors);
  return json;
}

// Sample i of a level lies in the middle of those that it stands for, or on the first one, if it is that.
OrderedJson transformations(const Geometry& geometry, unsigned level, Reduction reduction) {
  Geometry at = geometry;
  std::vector<double> steps(geometry.rank, 1.0);  // in samples of the image
  for (unsigned n = 0; n < level; ++n) {
    const geometry::HalvedAxes halved = geometry::halved_axes(at);
    for (unsigned axis = 0; axis < geometry.rank; ++axis) steps[axis] *= halved[axis] ? 2 : 1;
    at = geometry::geometry_above(std::move(at));
  }
  std::vector<double> scale, translation;
  for (const ZarrAxis axis : zarr_axes(geometry)) {
    const bool is_channels = axis.axis == ZarrAxis::kChannels;
    const double spacing = is_channels || geometry.spacing[axis.axis] == 0 ? 1.0 : geometry.spacing[axis.axis];
    const double step = is_channels ? 1.0 : steps[axis.axis];
    scale.push_back(spacing * step);
    translation.push_back(reduction == Reduction::kNearest ? 0.0 : spacing * (step - 1) / 2);
  }
  auto all = OrderedJson::array();
  all.push_back(transformation("scale", std::move(scale)));
  if (level > 0) all.push_back(transformation("translation", std::move(translation)));
  return all;
}

OrderedJson multiscale(const Geometry& geometry, const ZarrLevels& levels) {
  auto axes = OrderedJson::array();
  for (const ZarrAxis axis : zarr_axes(geometry)) axes.push_back(describe_axis(geometry, axis));
  auto datasets = OrderedJson::array();
  for (unsigned level = 0; level <= levels.count; ++level)
    datasets.push_back({{"path", std::to_string(level)},
                        {"coordinateTransformations", transformations(geometry, level, levels.reduction)}});
  OrderedJson json = {{"axes", std::move(axes)}, {"datasets", std::move(datasets)}};
  if (levels.count > 0) json["type"] = geometry::name(levels.reduction);
  return json;
}

bool is_float(ElementType type) {
  return type == ElementType::kF16 || type == ElementType::kF32 || type == ElementType::kF64;
}

// `transpose` turns the axes of the array into those of the stored samples: entry i is the axis of the array that is
// the i-th one there.
OrderedJson stored_order(const Geometry& geometry, const std::vector<ZarrAxis>& axes) {
  auto order = OrderedJson::array();
  for (unsigned stored = 0; stored < axes.size(); ++stored) {
    const ZarrAxis wanted{stored < geometry.rank ? stored : ZarrAxis::kChannels};
    order.push_back(std::find(axes.begin(), axes.end(), wanted) - axes.begin());
  }
  return order;
}

OrderedJson codec_chain(const Geometry& geometry, const std::vector<ZarrAxis>& axes) {
  auto codecs = OrderedJson::array();
  if (geometry.channels > 1 && axes.back().axis != ZarrAxis::kChannels)
    codecs.push_back({{"name", "transpose"}, {"configuration", {{"order", stored_order(geometry, axes)}}}});
  OrderedJson bytes = {{"name", "bytes"}};
  if (geometry::element_bytes(geometry.type) > 1) bytes["configuration"] = {{"endian", "little"}};
  codecs.push_back(std::move(bytes));
  if (geometry.codec == geometry::Codec::kZstd)  // frames as FORMAT.md demands them
    codecs.push_back({{"name", "zstd"}, {"configuration", {{"level", geometry.codec_level}, {"checksum", false}}}});
  return codecs;
}

std::string to_text(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace

bool has_ome_axes(const Geometry& geometry) {
  unsigned times = 0, others = 0, spaces = 0;
  AxisClass last = AxisClass::kTime;
  for (const ZarrAxis axis : zarr_axes(geometry)) {
    const AxisClass kind = class_of(geometry, axis);
    if (kind < last) return false;
    last = kind;
    ++(kind == AxisClass::kTime ? times : kind == AxisClass::kOther ? others : spaces);
  }
  return times <= 1 && others <= 1 && spaces >= 2 && spaces <= 3;
}

std::string zarr_group_json(const Geometry& geometry, const ZarrLevels& levels) {
  OrderedJson json = {{"zarr_format", 3}, {"node_type", "group"}};
  auto attributes = OrderedJson::object();
  if (has_ome_axes(geometry)) {
    auto multiscales = OrderedJson::array();
    multiscales.push_back(multiscale(geometry, levels));
    attributes["ome"] = {{"version", "0.5"}, {"multiscales", std::move(multiscales)}};
  }
  json["attributes"] = std::move(attributes);
  return to_text(json);
}

std::string zarr_array_json(const Geometry& geometry) {
  const std::vector<ZarrAxis> axes = zarr_axes(geometry);
  auto shape = OrderedJson::array();
  auto chunk = OrderedJson::array();
  auto names = OrderedJson::array();
  for (const ZarrAxis axis : axes) {
    const bool is_channels = axis.axis == ZarrAxis::kChannels;
    shape.push_back(is_channels ? geometry.channels : geometry.shape[axis.axis]);
    chunk.push_back(is_channels ? geometry.channels : geometry.extent[axis.axis]);
    names.push_back(name_of(geometry, axis));
  }
  OrderedJson json = {{"zarr_format", 3}, {"node_type", "array"}};
  json["shape"] = std::move(shape);
  json["data_type"] = names_of(geometry.type).zarr;
  json["chunk_grid"] = {{"name", "regular"}, {"configuration", {{"chunk_shape", std::move(chunk)}}}};
  json["chunk_key_encoding"] = {{"name", "default"}, {"configuration", {{"separator", "/"}}}};
  json["fill_value"] = is_float(geometry.type) ? OrderedJson(0.0) : OrderedJson(0);
  json["codecs"] = codec_chain(geometry, axes);
  json["attributes"] = OrderedJson::object();
  json["dimension_names"] = std::move(names);
  return to_text(json);
}

}  // namespace mdfs::views
