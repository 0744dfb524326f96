// Reading machine files: TOML, every field known, every error with its line.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"
#include "geometry/default_extent.h"
#include "geometry/shape_text.h"
#include "model/machine.h"
#include "model/quantity.h"
#include "model/toml_file.h"

namespace mdfs::model {
namespace {

bool good_name(std::string_view name) {
  if (name.empty() || name.size() > 64) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; });
}

Result<std::string> name_of(TomlTable& table) {
  MDFS_TRY_ASSIGN(const std::string name, table.text("name"));
  if (!good_name(name))
    return table.bad(table.find("name"), "name", "a name is 1 to 64 small letters, digits, - and _");
  return name;
}

std::optional<std::size_t> resource_index(const Machine& machine, const std::string& name) {
  for (std::size_t i = 0; i < machine.resources.size(); ++i)
    if (machine.resources[i].name == name) return i;
  return std::nullopt;
}

Result<Head> read_head(const toml::table& toml, const std::string& where, const std::string& path) {
  TomlTable table(toml, where, path);
  Head head;
  MDFS_TRY_ASSIGN(head.track_s, table.quantity("track", parse_time_s));
  MDFS_TRY_ASSIGN(head.stroke_s, table.quantity("stroke", parse_time_s));
  MDFS_TRY_ASSIGN(head.rotation_s, table.quantity("rotation", parse_time_s));
  MDFS_TRY_ASSIGN(head.capacity_bytes, table.quantity("capacity", parse_size_bytes));
  if (head.stroke_s < head.track_s)
    return table.bad(table.find("stroke"), "stroke", "is shorter than the seek to the next track");
  if (head.capacity_bytes < 1) return table.bad(table.find("capacity"), "capacity", "is less than a byte");
  MDFS_TRY(table.finish("a machine"));
  return head;
}

Status read_count(TomlTable& table, const Machine& machine, Resource& resource) {
  const toml::node* count = table.find("count");
  if (count == nullptr) return table.bad(count, "count", "is missing (a number, or \"disks\" for one a disk)");
  if (count->is_string()) {
    if (count->as_string()->get() != "disks") return table.bad(count, "count", "is a number or \"disks\"");
    resource.per_disk = true;
  } else {
    MDFS_TRY_ASSIGN(resource.count, table.whole_number(count, "count", 1, kMaxDisks));
  }
  const toml::node* shared = table.find("shared_by");
  if (shared == nullptr) return {};
  if (resource.per_disk) return table.bad(shared, "shared_by", "a component of each disk is not shared");
  if (!shared->is_string()) return table.bad(shared, "shared_by", "must be the name of a resource in quotes");
  resource.shared_by = resource_index(machine, shared->as_string()->get());
  if (!resource.shared_by) return table.bad(shared, "shared_by", "names no resource above this one");
  return {};
}

Status read_resource(const toml::table& toml, const std::string& where, Machine& machine) {
  const std::string path = fmt::format("resource[{}]", machine.resources.size());
  TomlTable table(toml, where, path);
  Resource resource;
  MDFS_TRY_ASSIGN(resource.name, name_of(table));
  if (resource_index(machine, resource.name))
    return table.bad(table.find("name"), "name", "is taken by another resource");
  MDFS_TRY(read_count(table, machine, resource));
  MDFS_TRY_ASSIGN(resource.servers, table.count("servers", 1, kMaxServers, 1));
  if (const toml::node* head = table.find("head"); head != nullptr) {
    if (!head->is_table()) return table.bad(head, "head", "must be a table of track, stroke, rotation and capacity");
    MDFS_TRY_ASSIGN(resource.head, read_head(*head->as_table(), where, path + ".head"));
  }
  MDFS_TRY(table.finish("a machine"));
  machine.resources.push_back(std::move(resource));
  return {};
}

Status read_costs(TomlTable& table, const Machine& machine, Stage& stage) {
  const toml::node* node = table.find("cost");
  if (node == nullptr) return table.bad(node, "cost", "is missing");
  if (node->is_number()) return table.bad(node, "cost", "a number without a unit (write \"10 ms\")");
  std::vector<const toml::node*> items;
  if (node->is_string()) items.push_back(node);
  if (node->is_array())
    for (const toml::node& item : *node->as_array()) items.push_back(&item);
  if (items.empty() || items.size() > kMaxCosts)
    return table.bad(node, "cost", fmt::format("must be a text or a list of 1 to {} of them", kMaxCosts));
  for (const toml::node* item : items) {
    if (item->is_number()) return table.bad(item, "cost", "a number without a unit (write \"10 ms\")");
    if (!item->is_string()) return table.bad(item, "cost", "must be a text in quotes, like \"full / 75 MB/s\"");
    const auto cost = parse_cost(item->as_string()->get());
    if (!cost.ok()) return table.bad(item, "cost", cost.error().where);
    const bool by_place = cost->kind == Cost::Kind::kHead || cost->has_zones();
    if (by_place && (!machine.resources[stage.resource].head || stage.per_window))
      return table.bad(item, "cost",
                       fmt::format("{} needs a stage of extents on a resource with a head",
                                   cost->has_zones() ? "a rate that falls over the disk" : "\"head\""));
    stage.costs.push_back(*cost);
  }
  return {};
}

Status read_stage(const toml::table& toml, const std::string& where, Machine& machine) {
  TomlTable table(toml, where, fmt::format("stage[{}]", machine.stages.size()));
  Stage stage;
  MDFS_TRY_ASSIGN(stage.name, name_of(table));
  MDFS_TRY_ASSIGN(const std::string resource, table.text("resource"));
  const auto index = resource_index(machine, resource);
  if (!index) return table.bad(table.find("resource"), "resource", fmt::format("\"{}\" names no resource", resource));
  stage.resource = *index;
  MDFS_TRY_ASSIGN(const std::string per, table.text("per", "extent"));
  if (per != "extent" && per != "window") return table.bad(table.find("per"), "per", "is \"extent\" or \"window\"");
  stage.per_window = per == "window";
  MDFS_TRY_ASSIGN(const std::string when, table.text("when", "always"));
  if (when != "always" && when != "hit" && when != "miss")
    return table.bad(table.find("when"), "when", "is \"always\", \"hit\" or \"miss\"");
  stage.when = when == "hit" ? When::kHit : when == "miss" ? When::kMiss : When::kAlways;
  if (stage.per_window && stage.when != When::kAlways)
    return table.bad(table.find("when"), "when", "a stage of whole windows knows no hit or miss");
  MDFS_TRY(read_costs(table, machine, stage));
  MDFS_TRY(table.finish("a machine"));
  machine.stages.push_back(std::move(stage));
  return {};
}

Status read_row_offset(TomlTable& table, Layout& layout) {
  const toml::node* node = table.find("row_offset");
  if (node == nullptr) return {};
  if (node->is_array()) {
    for (const toml::node& item : *node->as_array()) {
      MDFS_TRY_ASSIGN(const unsigned offset, table.whole_number(&item, "row_offset", 0, kMaxDisks));
      layout.row_offset.push_back(offset);
    }
    if (layout.row_offset.size() < 2 || layout.row_offset.size() > kMaxDisks)
      return table.bad(node, "row_offset", "a list has one entry for each number of disks from 1, two or more");
    return {};
  }
  MDFS_TRY_ASSIGN(const unsigned offset, table.whole_number(node, "row_offset", 0, kMaxDisks));
  layout.row_offset = {offset};
  return {};
}

Status read_layout(const toml::table& toml, const std::string& where, Layout& layout) {
  TomlTable table(toml, where, "placement");
  MDFS_TRY_ASSIGN(const std::string kind, table.text("kind", "extents"));
  if (kind != "extents" && kind != "striped")
    return table.bad(table.find("kind"), "kind", "is \"extents\" or \"striped\"");
  if (kind == "extents") {
    MDFS_TRY(read_row_offset(table, layout));
    if (table.find("group") != nullptr) {
      MDFS_TRY_ASSIGN(layout.group_bytes, table.quantity("group", parse_size_bytes));
    }
    MDFS_TRY_ASSIGN(layout.filled, table.share("filled"));
    MDFS_TRY_ASSIGN(const std::string requests, table.text("requests", "mount"));
    if (requests != "mount" && requests != "extents")
      return table.bad(table.find("requests"), "requests", "is \"mount\" or \"extents\"");
    if (requests == "extents") layout.requests = Layout::Requests::kExtents;
    return table.finish("a machine");
  }
  layout.kind = Layout::Kind::kStriped;
  layout.requests = Layout::Requests::kExtents;
  MDFS_TRY_ASSIGN(layout.unit_bytes, table.quantity("unit", parse_size_bytes));
  if (layout.unit_bytes < 1 || layout.unit_bytes > 1e12)
    return table.bad(table.find("unit"), "unit", "is not in 1 B .. 1 TB");
  MDFS_TRY_ASSIGN(layout.width, table.count("width", 1, kMaxDisks, std::nullopt));
  MDFS_TRY_ASSIGN(layout.parity, table.flag("parity", false));
  if (layout.parity && layout.width < 2)
    return table.bad(table.find("width"), "width", "parity needs two disks or more");
  return table.finish("a machine");
}

// One to five lengths of at least 1.
Status read_lengths(TomlTable& table, std::string_view key, const std::string& text, unsigned& rank,
                    geometry::Coord& lengths) {
  const auto parsed = geometry::parse_shape(text);
  if (!parsed.ok()) return table.bad(table.find(key), key, parsed.error().where);
  rank = parsed->rank;
  lengths = parsed->length;
  if (std::find(lengths.begin(), lengths.begin() + rank, 0) != lengths.begin() + rank)
    return table.bad(table.find(key), key, "has an axis of no length");
  return {};
}

Status read_image(const toml::table& toml, const std::string& where, Machine& machine) {
  TomlTable table(toml, where, "image");
  MDFS_TRY_ASSIGN(machine.shape, table.text("shape", machine.shape));
  MDFS_TRY_ASSIGN(machine.extent, table.text("extent", machine.extent));
  MDFS_TRY_ASSIGN(machine.bytes_per_pixel, table.count("bytes_per_pixel", 1, 65535, machine.bytes_per_pixel));
  geometry::Geometry image;
  MDFS_TRY(read_lengths(table, "shape", machine.shape, image.rank, image.shape));
  unsigned extent_rank = 0;
  MDFS_TRY(read_lengths(table, "extent", machine.extent, extent_rank, image.extent));
  // An extent that the file does not give is that of the mount, where the shape is of another rank.
  if (extent_rank != image.rank && table.find("extent") == nullptr) return table.finish("a machine");
  if (extent_rank != image.rank)
    return table.bad(table.find("extent"), "extent",
                     fmt::format("has {} axes, and the shape {}", extent_rank, image.rank));
  image.channels = machine.bytes_per_pixel;
  image.codec = geometry::Codec::kRaw;
  image.axes = geometry::default_axes(image.rank, false, image.channels > 1);
  if (const Status status = geometry::check(image); !status.ok())
    return table.bad(table.find("shape"), "shape", status.error().where);
  return table.finish("a machine");
}

bool takes_time(const Cost& cost) {
  return cost.kind == Cost::Kind::kHead || cost.low_s + cost.high_s + cost.bytes + cost.full + cost.part > 0;
}

// Stages of whole windows come first or last, and the hit ratio has stages to choose from.
Status check_stages(TomlTable& table, const Machine& machine) {
  bool extents_seen = false;
  bool epilogue = false;
  bool conditional = false;
  for (const Stage& stage : machine.stages) {
    conditional |= stage.when != When::kAlways;
    if (!stage.per_window && epilogue)
      return table.bad(table.find("stage"), "stage", "stages of whole windows come before or after those of extents");
    if (!stage.per_window) extents_seen = true;
    if (stage.per_window && extents_seen) epilogue = true;
  }
  const auto is_free = [](const Stage& stage) {
    return std::none_of(stage.costs.begin(), stage.costs.end(), takes_time);
  };
  if (!machine.stages.empty() && std::all_of(machine.stages.begin(), machine.stages.end(), is_free))
    return table.bad(table.find("stage"), "stage", "all costs are 0; a machine needs one that takes time");
  if (machine.hit_ratio > 0 && !conditional)
    return table.bad(table.find("hit_ratio"), "hit_ratio", "no stage says when = \"hit\" or \"miss\"");
  return {};
}

Result<Machine> parse(std::string_view text, const std::string& where) {
  MDFS_TRY_ASSIGN(const toml::table document, parse_toml(text, where));
  TomlTable table(document, where, "");
  Machine machine;
  MDFS_TRY_ASSIGN(machine.name, name_of(table));
  MDFS_TRY_ASSIGN(machine.description, table.text("description", ""));
  MDFS_TRY_ASSIGN(machine.disks, table.count("disks", 1, kMaxDisks, 1));
  MDFS_TRY_ASSIGN(machine.outstanding, table.count("outstanding", 0, 1u << 20, 0));
  MDFS_TRY_ASSIGN(machine.hit_ratio, table.share("hit_ratio"));
  for (const std::string_view key : {"image", "placement"}) {
    const toml::node* node = table.find(key);
    if (node == nullptr) continue;
    if (!node->is_table()) return table.bad(node, key, "must be a table");
    MDFS_TRY(key == "image" ? read_image(*node->as_table(), where, machine)
                            : read_layout(*node->as_table(), where, machine.layout));
  }
  MDFS_TRY(table.each("a machine", "resource", kMaxResources,
                      [&](const toml::table& item) { return read_resource(item, where, machine); }));
  MDFS_TRY(table.each("a machine", "stage", kMaxStages,
                      [&](const toml::table& item) { return read_stage(item, where, machine); }));
  MDFS_TRY(check_stages(table, machine));
  MDFS_TRY(table.finish("a machine"));
  if (machine.layout.kind == Layout::Kind::kStriped && machine.disks % machine.layout.width != 0)
    return table.bad(table.find("disks"), "disks",
                     fmt::format("{} disks make no whole volumes of {}", machine.disks, machine.layout.width));
  return machine;
}

}  // namespace

Result<Machine> parse_machine(std::string_view text, const std::string& where) {
  Result<Machine> machine = parse(text, where);
  if (machine.ok()) return machine;
  return Error{machine.error().code, printable(machine.error().where)};  // what it quotes may be anything
}

Result<Machine> read_machine(const std::string& path) {
  MDFS_TRY_ASSIGN(const std::string text, read_toml(path, kMaxMachineFileBytes));
  return parse_machine(text, path);
}

Result<Machine> find_machine(const std::string& name_or_path) {
  for (const Preset& preset : presets())
    if (preset.name == name_or_path) return parse_machine(preset.toml, std::string(preset.name));
  auto machine = read_machine(name_or_path);
  if (!machine.ok() && machine.error().code == Errc::kNotFound)
    return Error{Errc::kNotFound, fmt::format("{} is neither a shipped machine nor a file", name_or_path)};
  return machine;
}

}  // namespace mdfs::model
