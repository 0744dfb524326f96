// mdfs disk stats.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "mdfs/ioctl.h"
#include "mounted.h"
#include "support/json_output.h"
#include "support/streams.h"
#include "support/text.h"
#include "volume_text.h"

namespace mdfs::tools {
namespace {

struct StatsArguments {
  std::string path;
  bool reset = false;
  bool json = false;
};

std::string json_text(const mdfs_ioc_disks& disks, const mdfs_ioc_volume& volume) {
  nlohmann::ordered_json json;
  json["output_version"] = kOutputVersion;
  json["disks"] = nlohmann::ordered_json::array();
  for (const std::uint32_t i : disk_numbers(volume)) {
    const auto& disk = disks.disks[i];
    json["disks"].push_back({{"number", i},
                             {"path", text_of(volume.disks[i].name)},
                             {"reads", disk.reads},
                             {"writes", disk.writes},
                             {"flushes", disk.flushes},
                             {"read_bytes", disk.read_bytes},
                             {"written_bytes", disk.written_bytes},
                             {"since_s", disk.since_ns / 1'000'000'000},
                             {"read_errors", disk.read_errors},
                             {"write_errors", disk.write_errors},
                             {"flush_errors", disk.flush_errors},
                             {"checksum_errors", disk.checksum_errors},
                             {"repaired", disk.repaired},
                             {"slowness", static_cast<double>(disk.slowness_percent) / 100}});
  }
  return dump_json(json);
}

void print_text(const mdfs_ioc_disks& disks, const mdfs_ioc_volume& volume) {
  for (const std::uint32_t i : disk_numbers(volume)) {
    const auto& disk = disks.disks[i];
    const std::string path = text_of(volume.disks[i].name);
    print_out("disk {}{}{}\n", i, path.empty() ? "" : ": ", printable(path));
    print_out("  since the mount: {} reads of {}, {} writes of {}, {} flushes\n", disk.reads,
              format_size(disk.read_bytes), disk.writes, format_size(disk.written_bytes), disk.flushes);
    if (disk.slowness_percent > 100)
      print_out("  lately: reads took {:.1f} times as long as on the other disks\n",
                static_cast<double>(disk.slowness_percent) / 100);
    print_out(
        "  since {:%Y-%m-%d %H:%M}: errors reading {}, writing {}, flushing {}, checksums {}; {} copies repaired\n",
        fmt::localtime(static_cast<std::time_t>(disk.since_ns / 1'000'000'000)), disk.read_errors, disk.write_errors,
        disk.flush_errors, disk.checksum_errors, disk.repaired);
  }
}

Status stats(const StatsArguments& arguments) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_disks disks, disk_counters(arguments.path, arguments.reset));
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(arguments.path));
  if (arguments.json)
    print_out("{}\n", json_text(disks, volume));
  else
    print_text(disks, volume);
  return {};
}

}  // namespace

void add_disk_stats_command(CLI::App& noun, Action& action) {
  const auto arguments = std::make_shared<StatsArguments>();
  CLI::App* command = noun.add_subcommand("stats", "Show requests and errors of the disks");
  command->add_flag("--reset", arguments->reset, "Set the error counts to zero");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->add_option("PATH", arguments->path, "Mount point, or any file on the volume")->required();
  command->callback([arguments, &action] { action = [arguments] { return stats(*arguments); }; });
}

}  // namespace mdfs::tools
