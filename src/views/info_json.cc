// The text of info.json.
// SPDX-License-Identifier: Apache-2.0
#include "views/info_json.h"

#include <nlohmann/json.hpp>

#include "alloc/policy.h"
#include "codec/codec_table.h"
#include "views/level_source.h"
#include "views/zoom_name.h"

namespace mdfs::views {

std::string info_json(const volume::ImageInfo& info) {
  const geometry::Geometry& geometry = info.geometry;
  nlohmann::ordered_json json;
  json["output_version"] = kInfoVersion;
  json["axes"] = geometry.axes;
  const auto axis_array = [&](const auto& values) {
    auto array = nlohmann::ordered_json::array();
    for (unsigned axis = 0; axis < geometry.rank; ++axis) array.push_back(values[axis]);
    return array;
  };
  json["shape"] = axis_array(geometry.shape);
  json["channels"] = geometry.channels;
  json["type"] = geometry::name(geometry.type);
  json["extent"] = axis_array(geometry.extent);
  json["levels"] = 1 + info.levels;
  json["coarsest_level"] = coarsest_level(geometry, info.levels, kZoomTileSide);
  json["codec"] = codec::info(geometry.codec).name;
  if (codec::info(geometry.codec).has_levels) json["codec_level"] = geometry.codec_level;
  json["policy"] = alloc::name(geometry.policy);
  json["spacing"] = axis_array(geometry.spacing);
  json["unit"] = axis_array(geometry.unit);
  json["placement"] = {{"disks", info.placement.disks},
                       {"base", info.base},
                       {"row", info.placement.row},
                       {"plane", info.placement.plane},
                       {"slot", info.placement.slot}};
  if (geometry.rank > 3) json["placement"]["fourth"] = info.placement.fourth;
  if (geometry.rank > 4) json["placement"]["fifth"] = info.placement.fifth;
  json["generation"] = info.data_generation;
  json["size_bytes"] = info.size_bytes;
  json["stored_bytes"] = info.stored_bytes;
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace mdfs::views
