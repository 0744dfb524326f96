// mdfs volume sync, status, metrics and map.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "alloc/policy.h"
#include "base/text.h"
#include "commands.h"
#include "disk_command.h"
#include "disk_paths.h"
#include "geometry/geometry.h"
#include "map_picture.h"
#include "mdfs/ondisk.h"
#include "mounted.h"
#include "occupation.h"
#include "protection.h"
#include "spare.h"
#include "support/json_output.h"
#include "support/pending_file.h"
#include "support/streams.h"
#include "support/text.h"
#include "volume_errors.h"
#include "volume_metrics.h"
#include "volume_text.h"
#include "write_back.h"

namespace mdfs::tools {
namespace {

std::string policy_name(std::uint32_t policy) {
  return policy < geometry::kAllocationPolicies
             ? std::string(alloc::name(static_cast<geometry::AllocationPolicy>(policy)))
             : fmt::format("{}", policy);
}

nlohmann::ordered_json model_json(const mdfs_ioc_model& model) {
  nlohmann::ordered_json json = {
      {"machine", text_of(model.machine)}, {"hash", text_of(model.hash)}, {"seconds", model.seconds}};
  json["disks"] = nlohmann::ordered_json::array();
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(model.disk_count, MDFS_IOC_MAX_DISKS); ++i) {
    const auto& disk = model.disks[i];
    json["disks"].push_back({{"reads", disk.reads},
                             {"writes", disk.writes},
                             {"read_bytes", disk.read_bytes},
                             {"written_bytes", disk.written_bytes},
                             {"max_requests", disk.max_requests},
                             {"delay_s", disk.delay_s},
                             {"max_delay_s", disk.max_delay_s},
                             {"late", disk.late},
                             {"max_late_s", disk.max_late_s}});
  }
  json["components"] = nlohmann::ordered_json::array();
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(model.component_count, MDFS_IOC_MODEL_COMPONENTS); ++i) {
    const auto& use = model.components[i];
    const double busy = model.seconds > 0 ? use.busy_s / (model.seconds * std::max(use.servers, 1u)) : 0;
    json["components"].push_back({{"name", text_of(use.name)},
                                  {"instance", use.instance},
                                  {"servers", use.servers},
                                  {"served", use.served},
                                  {"busy_s", use.busy_s},
                                  {"utilization", busy},
                                  {"mean_queue", use.mean_queue},
                                  {"max_queue", use.max_queue}});
  }
  return json;
}

nlohmann::ordered_json zones_json(const DiskOccupation& disk) {
  const std::vector<double> shares = disk.zone_shares();
  if (shares.empty()) return {{"count", 0}};
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  return {{"count", shares.size()},
          {"zone_blocks", disk.zone_blocks},
          {"least", *least},
          {"most", *most},
          {"imbalance", imbalance(shares)}};
}

// With those of disks that do not answer.
std::vector<std::string> errors_of(const std::string& path, const mdfs_ioc_volume& volume,
                                   const std::vector<DiskOccupation>& disks) {
  std::vector<std::string> all = all_errors(volume, path);
  for (std::size_t i = 0; i < disks.size(); ++i)
    if (disks[i].silent)
      all.push_back(
          fmt::format("disk {} ({}) does not answer: writes, and reads of what has no other copy, wait for it; "
                      "if it stays so, detach the device, and see mdfs disk replace",
                      i, shown(volume.disks[i].name)));
  return all;
}

std::vector<std::string> warnings_of(const std::string& path, const mdfs_ioc_volume& volume,
                                     const std::vector<DiskOccupation>& disks) {
  std::vector<std::string> all = moved_disks(volume);
  if (const auto counted = disk_counters(path); counted.ok())
    for (std::string& line : slow_disks(volume, *counted)) all.push_back(std::move(line));
  for (std::string& line : fullness_warnings(disks)) all.push_back(std::move(line));
  return all;
}

std::string json_text(const std::string& path, const mdfs_ioc_volume& volume, const std::vector<DiskOccupation>& disks,
                      const std::optional<mdfs_ioc_model>& model,
                      const std::optional<mdfs_ioc_fragmentation>& fragmentation) {
  nlohmann::ordered_json json;
  json["output_version"] = kOutputVersion;
  json["uuid"] = uuid_text(volume.uuid);
  json["label"] = text_of(volume.name);
  json["generation"] = volume.generation;
  json["read_only"] = volume.read_only != 0;
  json["errors_option"] = (volume.flags & MDFS_VOLUME_ZEROES_LOST) != 0 ? "zero" : "eio";
  json["spreading_metadata"] = (volume.flags & MDFS_VOLUME_SPREADING) != 0;
  json["has_copies"] = (volume.flags & MDFS_VOLUME_COPIES) != 0;
  json["read_only_reason"] = text_of(volume.read_only_reason);
  json["errors"] = errors_of(path, volume, disks);
  json["block_size"] = volume.block_size;
  json["policy"] = policy_name(volume.policy);
  json["total_blocks"] = volume.total_blocks;
  json["free_blocks"] = volume.free_blocks;
  json["available_blocks"] = volume.available_blocks;
  json["objects"] = volume.objects;
  json["spare"] = spare_json(volume);
  json["cache"] = {{"budget_bytes", volume.cache_budget_bytes},
                   {"bytes", volume.cache_bytes},
                   {"dirty_bytes", volume.cache_dirty_bytes},
                   {"hits", volume.cache_hits},
                   {"misses", volume.cache_misses}};
  json["imbalance"] = imbalance(disk_shares(disks));
  json["warnings"] = warnings_of(path, volume, disks);
  const auto balancing = balancing_json(path);
  json["balancing"] = balancing ? nlohmann::ordered_json::parse(*balancing) : nlohmann::ordered_json();
  const auto protecting = protecting_json(path);
  json["protection"] = protecting ? nlohmann::ordered_json::parse(*protecting) : nlohmann::ordered_json();
  const auto draining = drain_json(volume, path);
  json["drain"] = draining ? nlohmann::ordered_json::parse(*draining) : nlohmann::ordered_json();
  const auto resizing = resizing_json(path);
  json["resizing"] = resizing ? nlohmann::ordered_json::parse(*resizing) : nlohmann::ordered_json();
  json["disks"] = nlohmann::ordered_json::array();
  for (const std::uint32_t i : disk_numbers(volume)) {
    nlohmann::ordered_json disk = disk_json(i, volume);
    disk["data_blocks"] = disks[i].data_blocks;
    disk["data_used_blocks"] = disks[i].data_used_blocks;
    disk["occupation"] = disks[i].share();
    disk["fallback_runs"] = disks[i].fallback_runs;
    disk["zones"] = zones_json(disks[i]);
    json["disks"].push_back(std::move(disk));
  }
  if (fragmentation) json["fragmentation"] = nlohmann::ordered_json::parse(fragmentation_json(*fragmentation, true));
  if (model) json["modelled"] = model_json(*model);
  return dump_json(json) + "\n";
}

template <typename Disk>
void print_disk(std::uint32_t number, const Disk& disk, const DiskOccupation& use, std::uint64_t block_size) {
  const std::string path = shown(disk.name);
  print_out("  disk {}: {}{}{}, ", number, state_name(disk.state), path.empty() ? "" : " ", path);
  const std::string size = format_size(disk.blocks * block_size);
  const std::string weight = disk.weight == 0   ? ", metadata alone"
                             : disk.weight == 1 ? ""
                                                : fmt::format(", weight {}", disk.weight);
  if (!is_readable(disk.state)) {
    print_out("{}\n", size + weight);
    return;
  }
  print_out("{} of {} free", format_size(disk.free_blocks * block_size), size);
  if (use.silent) print_out("; it does not answer");
  if (use.there && !use.no_data) print_out("; {:.1f} % of its room for data in use", use.share() * 100);
  if (const std::vector<double> shares = use.zone_shares(); !shares.empty() && !use.no_data) {
    const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
    print_out(", {:.0f} to {:.0f} % of its {} zones", *least * 100, *most * 100, shares.size());
  }
  print_out("{}\n", weight);
}

void print_text(const std::string& path, const mdfs_ioc_volume& volume, const std::vector<DiskOccupation>& disks) {
  const std::string label = shown(volume.name);
  print_out("volume {}{}\n", uuid_text(volume.uuid), label.empty() ? "" : " '" + label + "'");
  print_out("  {} of {} available, {} files and directories, generation {}\n",
            format_size(volume.available_blocks * volume.block_size),
            format_size(volume.total_blocks * volume.block_size), volume.objects, volume.generation);
  const std::vector<std::string> wrong = errors_of(path, volume, disks);
  if (volume.read_only != 0 && wrong.empty()) print_out("  read-only: {}\n", shown(volume.read_only_reason));
  for (const std::string& error : wrong) print_out("  error: {}\n", error);
  for (const std::string& warning : warnings_of(path, volume, disks)) print_out("  warning: {}\n", warning);
  print_out("  policy: {}\n", policy_name(volume.policy));
  print_out("  cache: {} of {} used, {} not yet written, {} hits, {} misses\n", format_size(volume.cache_bytes),
            format_size(volume.cache_budget_bytes), format_size(volume.cache_dirty_bytes), volume.cache_hits,
            volume.cache_misses);
  if (const std::vector<double> shares = disk_shares(disks); shares.size() > 1)
    print_out("  balance: the fullest disk is {:.2f} times as full as the mean\n", imbalance(shares));
  for (const std::uint32_t i : disk_numbers(volume)) print_disk(i, volume.disks[i], disks[i], volume.block_size);
}

void print_text(const mdfs_ioc_model& model) {
  print_out("  modelled as {} ({}) for {:.1f} s\n", text_of(model.machine), text_of(model.hash), model.seconds);
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(model.disk_count, MDFS_IOC_MAX_DISKS); ++i) {
    const auto& disk = model.disks[i];
    print_out("  modelled disk {}: {} reads of {}, {} writes of {}, at most {} at a time, {} late\n", i, disk.reads,
              format_size(disk.read_bytes), disk.writes, format_size(disk.written_bytes), disk.max_requests, disk.late);
  }
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(model.component_count, MDFS_IOC_MODEL_COMPONENTS); ++i) {
    const auto& use = model.components[i];
    print_out("  {} {}: busy {:.3f} s, queue {:.2f} on average, {} at most\n", shown(use.name), use.instance,
              use.busy_s, use.mean_queue, use.max_queue);
  }
}

struct StatusArguments {
  std::string path;
  bool json = false;
};

// The exit status tells scripts that the output names errors.
void tell_health(const std::string& path, const mdfs_ioc_volume& volume, const std::vector<DiskOccupation>& disks) {
  if (!errors_of(path, volume, disks).empty()) end_with(kUnhealthyStatus);
}

Status status_command(const StatusArguments& arguments) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(arguments.path));
  MDFS_TRY_ASSIGN(const std::optional<mdfs_ioc_model> model, model_info(arguments.path));
  const std::optional<mdfs_ioc_fragmentation> fragmentation = volume_fragmentation(arguments.path);
  MDFS_TRY_ASSIGN(const std::vector<DiskOccupation> disks, occupation(arguments.path, volume));
  if (arguments.json) {
    print_out("{}", json_text(arguments.path, volume, disks, model, fragmentation));
    tell_health(arguments.path, volume, disks);
    return {};
  }
  print_text(arguments.path, volume, disks);
  for (const std::string& line : drain_lines(volume, arguments.path)) print_out("  {}\n", line);
  if (const auto line = balancing_line(arguments.path)) print_out("  {}\n", *line);
  if (const auto line = protecting_line(arguments.path)) print_out("  {}\n", *line);
  if (const auto line = spare_line(volume)) print_out("  {}\n", *line);
  if (fragmentation && fragmentation->images > 0)
    print_out("  {} {} images: {}; the worst one has {:.2f} (inode {})\n",
              fragmentation->complete != 0 ? "all" : "first", fragmentation->images, fragmentation_text(*fragmentation),
              fragmentation->worst_factor, fragmentation->worst_inode);
  if (fragmentation && fragmentation->relocated_home + fragmentation->away_from_home > 0)
    print_out("  rewritten extents: {} relocated home ({}), {} wait for relocation\n", fragmentation->relocated_home,
              format_size(fragmentation->relocated_home_bytes), fragmentation->away_from_home);
  if (model) print_text(*model);
  tell_health(arguments.path, volume, disks);
  return {};
}

Status metrics_command(const std::string& path) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(path));
  MDFS_TRY_ASSIGN(const mdfs_ioc_disks counted, disk_counters(path));
  print_out("{}", metrics_text(volume, counted));
  return {};
}

struct MapArguments {
  std::string path, svg;
  bool json = false, force = false;
};

// The disks that there are, without the numbers that no disk has.
std::string map_json(const mdfs_ioc_volume& volume, const std::vector<DiskOccupation>& disks) {
  nlohmann::ordered_json json;
  json["output_version"] = kOutputVersion;
  json["block_size"] = volume.block_size;
  json["disks"] = nlohmann::ordered_json::array();
  for (const std::uint32_t i : disk_numbers(volume)) {
    auto zones = nlohmann::ordered_json::array();
    for (const ZoneOccupation& zone : disks[i].zones) zones.push_back({zone.blocks, zone.used_blocks});
    json["disks"].push_back({{"number", i}, {"zone_blocks", disks[i].zone_blocks}, {"zones", std::move(zones)}});
  }
  return dump_json(json, -1) + "\n";
}

// A character a zone, by tenths.
void print_map(const mdfs_ioc_volume& volume, const std::vector<DiskOccupation>& disks) {
  for (const std::uint32_t i : disk_numbers(volume)) {
    std::string line;
    for (const ZoneOccupation& zone : disks[i].zones) {
      constexpr std::string_view kTenths = "0123456789";
      const std::uint64_t tenth = zone.blocks == 0 ? 0 : zone.used_blocks * 10 / zone.blocks;
      line += zone.blocks == 0 ? 'm' : tenth >= kTenths.size() ? '#' : kTenths[tenth];
    }
    print_out("disk {}: {}\n", i, disks[i].there ? line : "not there");
  }
}

Status map_command(const MapArguments& arguments) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(arguments.path));
  MDFS_TRY_ASSIGN(const std::vector<DiskOccupation> disks, occupation(arguments.path, volume));
  if (!arguments.svg.empty()) {
    std::vector<std::string> names;
    std::vector<std::uint32_t> numbers;
    std::vector<DiskOccupation> there;
    for (const std::uint32_t i : disk_numbers(volume)) {
      names.push_back(text_of(volume.disks[i].name));
      numbers.push_back(i);
      there.push_back(disks[i]);
    }
    const std::string label = text_of(volume.name);
    MDFS_TRY(write_text_file(
        arguments.svg,
        map_svg(there, numbers, names, "Volume " + (label.empty() ? uuid_text(volume.uuid) : "'" + label + "'"),
                volume.block_size),
        arguments.force));
  }
  if (arguments.json)
    print_out("{}", map_json(volume, disks));
  else if (arguments.svg.empty())
    print_map(volume, disks);
  return {};
}

}  // namespace

void add_volume_commands(CLI::App& app, Action& action) {
  CLI::App* noun = app.add_subcommand("volume", "Show and manage a mounted volume");
  noun->require_subcommand(1);

  const auto path = std::make_shared<std::string>();
  CLI::App* command = noun->add_subcommand("sync", "Wait until everything written so far is on the disks");
  command->add_option("PATH", *path, "Mount point, or any file on the volume")->required();
  command->callback([path, &action] { action = [path] { return sync_with_bar(*path); }; });

  const auto status = std::make_shared<StatusArguments>();
  command =
      noun->add_subcommand("status", "Show disks, space, cache and errors; exit with status 4 if there are errors");
  command->add_flag("--json", status->json, "Print JSON");
  command->add_option("PATH", status->path, "Mount point, or any file on the volume")->required();
  command->callback([status, &action] { action = [status] { return status_command(*status); }; });

  const auto measured = std::make_shared<std::string>();
  command =
      noun->add_subcommand("metrics", "Print the state of the volume and its disks in the text format of Prometheus");
  command->add_option("PATH", *measured, "Mount point, or any file on the volume")->required();
  command->callback([measured, &action] { action = [measured] { return metrics_command(*measured); }; });

  add_lost_command(*noun, action);
  add_trim_command(*noun, action);
  add_spare_command(*noun, action);
  add_takeover_command(*noun, action);

  const auto map = std::make_shared<MapArguments>();
  command = noun->add_subcommand("map", "Show how full the zones of every disk are");
  CLI::Option* const svg = command->add_option("--svg", map->svg, "Draw the zones to this SVG file")->type_name("FILE");
  command->add_flag("--force", map->force, "Replace an existing SVG file")->needs(svg);
  command->add_flag("--json", map->json, "Print JSON");
  command->add_option("PATH", map->path, "Mount point, or any file on the volume")->required();
  command->callback([map, &action] { action = [map] { return map_command(*map); }; });
}

}  // namespace mdfs::tools
