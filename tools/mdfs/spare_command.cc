// mdfs volume spare: room that stays free for the rebuild of lost disks.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.h"
#include "disk_command.h"
#include "fuse/control.h"
#include "mounted.h"
#include "spare.h"
#include "support/json_output.h"
#include "support/ranges.h"
#include "support/streams.h"

namespace mdfs::tools {
namespace {

struct SpareArguments {
  std::string path;
  std::optional<unsigned> disks;
  bool json = false;
};

Status spare_command(const SpareArguments& arguments) {
  MDFS_TRY_ASSIGN(mdfs_ioc_volume volume, volume_info(arguments.path));
  if (arguments.disks) {
    MDFS_TRY_ASSIGN(fuse::ControlClient daemon, daemon_of(volume));
    MDFS_TRY(daemon.change({fmt::format("spare {}", *arguments.disks)}, {}));
    MDFS_TRY_ASSIGN(volume, volume_info(arguments.path));
  }
  if (arguments.json) {
    nlohmann::ordered_json json = {{"output_version", kOutputVersion}};
    json.update(spare_json(volume));
    print_out("{}\n", dump_json(json));
  } else {
    print_out("{}\n", spare_line(volume).value_or("no room is kept for the rebuild of lost disks"));
    if (const auto error = spare_error(volume)) print_out("error: {}\n", *error);
  }
  return {};
}

}  // namespace

void add_spare_command(CLI::App& noun, Action& action) {
  const auto arguments = std::make_shared<SpareArguments>();
  CLI::App* command =
      noun.add_subcommand("spare", "Show or set for how many lost disks room stays free to make second copies anew");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->add_option("PATH", arguments->path, "Mount point, or any file on the volume")->required();
  command->add_option("DISKS", arguments->disks, "0 to the number of disks less two")
      ->check(whole_number(0, MDFS_IOC_MAX_DISKS - 2));
  command->callback([arguments, &action] { action = [arguments] { return spare_command(*arguments); }; });
}

}  // namespace mdfs::tools
