// The attribute user.mdfs.geometry.
// SPDX-License-Identifier: Apache-2.0
#include "views/geometry_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "alloc/policy.h"
#include "base/checked.h"
#include "codec/codec_table.h"
#include "geometry/default_extent.h"

namespace mdfs::views {
namespace {

using geometry::Geometry;
using Json = nlohmann::ordered_json;

Error bad(std::string_view field, std::string_view rule) {
  return Error{Errc::kInvalidArgument, "geometry." + std::string(field) + " " + std::string(rule)};
}

// An array of one value an axis into `out`; absent: as it is. `read` gives nothing for what cannot be a value.
template <typename Values, typename Read>
Status read_axes(const Json& json, std::string_view field, unsigned rank, Values& out, const Read& read,
                 std::string_view rule) {
  const auto found = json.find(field);
  if (found == json.end()) return {};
  if (!found->is_array() || found->size() != rank) return bad(field, "has one value for each axis");
  for (unsigned axis = 0; axis < rank; ++axis) {
    const auto value = read((*found)[axis]);
    if (!value) return bad(field, rule);
    out[axis] = *value;
  }
  return {};
}

std::optional<std::uint64_t> length_of(const Json& value) {
  if (!value.is_number_unsigned()) return {};
  return value.get<std::uint64_t>();
}

std::optional<double> distance_of(const Json& value) {
  if (!value.is_number()) return {};
  const auto distance = value.get<double>();
  if (!std::isfinite(distance) || distance < 0) return {};
  return distance;
}

std::optional<std::string> unit_of(const Json& value) {
  if (!value.is_string() || value.get_ref<const std::string&>().size() > geometry::kMaxUnitBytes) return {};
  return value.get<std::string>();
}

Result<std::string> text_at(const Json& json, std::string_view field, std::string_view otherwise) {
  const auto found = json.find(field);
  if (found == json.end()) return std::string(otherwise);
  if (!found->is_string()) return bad(field, "is a text");
  return found->get<std::string>();
}

Status read_codec(const Json& json, Geometry& geometry) {
  MDFS_TRY_ASSIGN(const std::string name, text_at(json, "codec", codec::info(geometry.codec).name));
  const auto chosen = codec::parse_name(name);
  if (!chosen.ok()) return bad("codec", "is " + codec::names_text());
  const codec::CodecInfo& row = codec::info(*chosen);
  geometry.codec = *chosen;
  if (!row.has_levels) return {};
  geometry.codec_level = row.default_level;
  const auto level = json.find("codec_level");
  if (level == json.end()) return {};
  const std::string rule = fmt::format("is in {}..{}", row.levels.lowest, row.levels.highest);
  if (!level->is_number_integer()) return bad("codec_level", rule);
  const auto value = level->get<std::int64_t>();
  if (value < row.levels.lowest || value > row.levels.highest) return bad("codec_level", rule);
  geometry.codec_level = static_cast<int>(value);
  return {};
}

Status read_policy(const Json& json, Geometry& geometry) {
  MDFS_TRY_ASSIGN(const std::string policy, text_at(json, "policy", "default"));
  if (policy == alloc::name(geometry::AllocationPolicy::kDefault)) return {};
  const auto parsed = alloc::parse_policy(policy);
  if (!parsed.ok()) return bad("policy", "is default, " + alloc::policy_names());
  geometry.policy = *parsed;
  return {};
}

// Rank, shape and what a sample is.
Status read_samples(const Json& json, Geometry& geometry) {
  const auto shape = json.find("shape");
  if (shape == json.end() || !shape->is_array() || shape->empty() || shape->size() > geometry::kMaxRank)
    return bad("shape", fmt::format("is an array of 1 to {} lengths", geometry::kMaxRank));
  geometry.rank = static_cast<unsigned>(shape->size());
  MDFS_TRY(read_axes(json, "shape", geometry.rank, geometry.shape, length_of, "holds lengths"));
  if (!json.contains("type")) return bad("type", "is missing");
  MDFS_TRY_ASSIGN(const std::string type, text_at(json, "type", ""));
  const auto parsed = geometry::parse_element_type(type);
  if (!parsed.ok()) return bad("type", parsed.error().where);
  geometry.type = *parsed;
  if (const auto channels = json.find("channels"); channels != json.end()) {
    const auto number = length_of(*channels);
    if (!number || *number < 1 || *number > geometry::kMaxChannels) return bad("channels", "is in 1..65535");
    geometry.channels = static_cast<unsigned>(*number);
  }
  MDFS_TRY_ASSIGN(geometry.axes,
                  text_at(json, "axes", geometry::default_axes(geometry.rank, false, geometry.channels > 1)));
  return {};
}

}  // namespace

std::string geometry_json(const SizedGeometry& sized) {
  const Geometry& geometry = sized.geometry;
  Json json;
  const auto axis_array = [&](const auto& values) {
    auto array = Json::array();
    for (unsigned axis = 0; axis < geometry.rank; ++axis) array.push_back(values[axis]);
    return array;
  };
  json["axes"] = geometry.axes;
  json["shape"] = axis_array(geometry.shape);
  json["channels"] = geometry.channels;
  json["type"] = geometry::name(geometry.type);
  json["size_bytes"] = sized.size_bytes;
  json["extent"] = axis_array(geometry.extent);
  json["codec"] = codec::info(geometry.codec).name;
  if (codec::info(geometry.codec).has_levels) json["codec_level"] = geometry.codec_level;
  json["policy"] = alloc::name(geometry.policy);
  json["spacing"] = axis_array(geometry.spacing);
  json["unit"] = axis_array(geometry.unit);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<SizedGeometry> parse_geometry_json(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Error{Errc::kInvalidArgument, "the geometry is not a JSON object"};
  SizedGeometry sized;
  Geometry& geometry = sized.geometry;
  MDFS_TRY(read_samples(json, geometry));
  MDFS_TRY(read_codec(json, geometry));
  MDFS_TRY(read_policy(json, geometry));
  MDFS_TRY(read_axes(json, "spacing", geometry.rank, geometry.spacing, distance_of, "holds numbers of at least 0"));
  MDFS_TRY(read_axes(json, "unit", geometry.rank, geometry.unit, unit_of, "holds texts of at most 7 bytes"));
  if (json.contains("extent")) {
    MDFS_TRY(read_axes(json, "extent", geometry.rank, geometry.extent, length_of, "holds lengths"));
  } else {
    geometry.extent = geometry::default_extent(geometry.rank, geometry.shape, geometry.sample_bytes(), geometry.axes);
  }
  MDFS_TRY(geometry::check(geometry));
  geometry.extent = geometry::trimmed_extent(geometry);
  MDFS_TRY(geometry::check_extent(geometry));
  sized.size_bytes = geometry.size_bytes();
  if (const auto size = json.find("size_bytes"); size != json.end()) {
    const auto bytes = length_of(*size);
    if (!bytes || *bytes > sized.size_bytes || ceil_div(*bytes, geometry.slab_bytes()) != geometry.shape[0])
      return bad("size_bytes", "ends within the last step along the slowest axis");
    sized.size_bytes = *bytes;
  }
  return sized;
}

}  // namespace mdfs::views
