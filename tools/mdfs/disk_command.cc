// mdfs disk list, and the noun.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "mounted.h"
#include "support/text.h"
#include "volume_text.h"
#include "volume_trouble.h"

namespace mdfs::tools {
namespace {

std::uint32_t disk_count(const mdfs_ioc_volume& volume) {
  return std::min<std::uint32_t>(volume.disk_count, MDFS_IOC_MAX_DISKS);
}

struct ListArguments {
  std::string path;
  bool json = false;
};

Status list(const ListArguments& arguments) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(arguments.path));
  if (arguments.json) {
    nlohmann::ordered_json json;
    json["output_version"] = kOutputVersion;
    json["uuid"] = uuid_text(volume.uuid);
    json["block_size"] = volume.block_size;
    json["troubles"] = troubles(volume);
    json["disks"] = nlohmann::ordered_json::array();
    for (std::uint32_t i = 0; i < disk_count(volume); ++i) json["disks"].push_back(disk_json(i, volume));
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return {};
  }
  fmt::print("{:>4} {:>6}  {:8} {:>10} {:>10} {:>5}  {}\n", "disk", "weight", "state", "size", "free", "used", "path");
  for (std::uint32_t i = 0; i < disk_count(volume); ++i) {
    const auto& disk = volume.disks[i];
    const std::string state = state_name(disk.state);
    const bool readable = state == "healthy";
    const double used =
        disk.blocks > 0 ? 100 - 100 * static_cast<double>(disk.free_blocks) / static_cast<double>(disk.blocks) : 0;
    fmt::print("{:>4} {:>6}  {:8} {:>10} {:>10} {:>5}  {}\n", i, disk.weight, state,
               format_size(disk.blocks * volume.block_size),
               readable ? format_size(disk.free_blocks * volume.block_size) : "-",
               readable ? fmt::format("{:.0f} %", used) : "-", text_of(disk.name));
  }
  for (const std::string& trouble : troubles(volume)) fmt::print("trouble: {}\n", trouble);
  return {};
}

void add_list(CLI::App& noun, Action& action) {
  const auto arguments = std::make_shared<ListArguments>();
  CLI::App* command = noun.add_subcommand("list", "Show the disks: number, weight, state, room");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->add_option("PATH", arguments->path, "Mount point, or any file on the volume")->required();
  command->callback([arguments, &action] { action = [arguments] { return list(*arguments); }; });
}

}  // namespace

void add_disk_commands(CLI::App& app, Action& action) {
  CLI::App* noun = app.add_subcommand("disk", "The disks of a mounted volume");
  noun->require_subcommand(1);
  add_list(*noun, action);
  add_disk_stats_command(*noun, action);
}

}  // namespace mdfs::tools
