// mdfs disk probe: what a disk is, read from itself, for people and for udev.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "device/find_disks.h"
#include "device/probe.h"
#include "disk_command.h"
#include "mounted.h"
#include "support/json_output.h"
#include "support/streams.h"

namespace mdfs::tools {
namespace {

struct ProbeArguments {
  std::string disk;
  bool json = false, udev = false;
};

// What the built-in blkid of udev says of filesystems that it knows.
void print_for_udev(const format::Label& label) {
  const std::string volume = label.volume_uuid.to_string(), disk = label.disk_uuid.to_string();
  print_out("ID_FS_TYPE=mdfs\nID_FS_USAGE=filesystem\nID_FS_VERSION={}\n", MDFS_FORMAT_VERSION);
  print_out("ID_FS_UUID={}\nID_FS_UUID_ENC={}\nID_FS_UUID_SUB={}\nID_FS_UUID_SUB_ENC={}\n", volume, volume, disk, disk);
  const device::UdevText name = device::udev_text(label.name);
  if (!name.encoded.empty()) print_out("ID_FS_LABEL={}\nID_FS_LABEL_ENC={}\n", name.shown, name.encoded);
}

Status probe(const ProbeArguments& arguments) {
  MDFS_TRY_ASSIGN(const format::Label label, device::read_label(arguments.disk));
  if (arguments.udev) {
    print_for_udev(label);
    return {};
  }
  const std::size_t members = format::count_disks(label.members);
  if (arguments.json) {
    nlohmann::ordered_json json;
    json["output_version"] = kOutputVersion;
    json["uuid"] = label.volume_uuid.to_string();
    json["label"] = label.name;
    json["disk_uuid"] = label.disk_uuid.to_string();
    json["number"] = label.disk_index;
    json["disks"] = members;
    json["block_size"] = label.block_size;
    json["bytes"] = label.disk_blocks * label.block_size;
    print_out("{}\n", dump_json(json));
    return {};
  }
  print_out("{}: disk {} ({}) of {} of the volume {} {}\n", arguments.disk, label.disk_index,
            label.disk_uuid.to_string(), members,
            label.name.empty() ? "without a name," : "\"" + printable(label.name) + "\",",
            label.volume_uuid.to_string());
  return {};
}

}  // namespace

void add_probe_command(CLI::App& noun, Action& action) {
  const auto arguments = std::make_shared<ProbeArguments>();
  CLI::App* command = noun.add_subcommand("probe", "Show the volume of a disk, mounted or not");
  CLI::Option* json = command->add_flag("--json", arguments->json, "Print JSON");
  command->add_flag("--udev", arguments->udev, "Print properties for a udev rule")->excludes(json);
  command->add_option("DISK", arguments->disk, "Block device or file")->required();
  command->callback([arguments, &action] { action = [arguments] { return probe(*arguments); }; });
}

}  // namespace mdfs::tools
