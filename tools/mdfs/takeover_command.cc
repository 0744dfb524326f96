// mdfs volume takeover: the writer of a volume in a cluster is fenced.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "commands.h"
#include "device/open.h"
#include "support/cluster_options.h"
#include "support/json_output.h"
#include "support/streams.h"

namespace mdfs::tools {
namespace {

struct TakeoverArguments {
  std::vector<std::string> disks;
  bool json = false;
};

// All names are looked at before a writer is fenced.
Status take_over(const TakeoverArguments& arguments) {
  for (const std::string& disk : arguments.disks) {
    MDFS_TRY_ASSIGN(const device::UniqueFd named, device::open_disk_descriptor(disk, device::OpenMode::kLook));
    if (device::is_path(disk)) MDFS_TRY(device::take_disk_over(disk));
  }
  nlohmann::ordered_json json;
  json["output_version"] = kOutputVersion;
  json["disks"] = nlohmann::ordered_json::array();
  for (const std::string& disk : arguments.disks) {
    MDFS_TRY_ASSIGN(const std::vector<std::string> writers, device::take_disk_over(disk));
    json["disks"].push_back({{"disk", disk}, {"fenced", writers}});
    if (arguments.json) continue;
    if (writers.empty())
      print_out("{}: its lock is free\n", disk);
    else
      print_out("{}: {} was fenced, and writes nothing more; its lock is broken\n", disk, fmt::join(writers, ", "));
  }
  if (arguments.json) print_out("{}\n", dump_json(json));
  return {};
}

}  // namespace

void add_takeover_command(CLI::App& noun, Action& action) {
  const auto given = std::make_shared<TakeoverArguments>();
  CLI::App* command =
      noun.add_subcommand("takeover", "Fence the writer of a volume in a RADOS cluster, so that it can be mounted");
  add_cluster_options(*command);
  command->add_flag("--json", given->json, "Print JSON");
  command->add_option("DISK", given->disks, "All disks of the volume: rados:POOL[/NAMESPACE]/NAME")->required();
  command->callback([given, &action] { action = [given] { return take_over(*given); }; });
}

}  // namespace mdfs::tools
