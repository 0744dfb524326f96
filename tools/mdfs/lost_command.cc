// mdfs volume lost: the files that have data on disks which are missing or have failed, by their paths.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "commands.h"
#include "inode_names.h"
#include "lost_files.h"
#include "mounted.h"
#include "support/command.h"
#include "support/json_output.h"
#include "support/streams.h"
#include "support/text.h"
#include "volume_text.h"

namespace mdfs::tools {
namespace {

struct LostArguments {
  std::string path;
  bool json = false;
};

void print_json(const mdfs_ioc_volume& volume, const LostFiles& all, const InodeNames& names) {
  nlohmann::ordered_json json;
  json["output_version"] = kOutputVersion;
  json["uuid"] = uuid_text(volume.uuid);
  json["disks"] = nlohmann::ordered_json::array();
  for (const std::uint32_t i : disk_numbers(all.disks)) {
    const std::string name = text_of(volume.disks[i].name);
    json["disks"].push_back({{"number", i},
                             {"uuid", uuid_text(volume.disks[i].uuid)},
                             {"path", name.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(name)},
                             {"state", state_name(volume.disks[i].state)}});
  }
  json["files_looked_at"] = all.looked_at;
  json["unreadable_items"] = all.unreadable_items;
  json["files"] = nlohmann::ordered_json::array();
  for (const auto& [inode, lost] : all.files) {
    const InodeName& name = names.at(inode);
    json["files"].push_back({{"inode", inode},
                             {"paths", name.paths},
                             {"level", name.level > 0 ? nlohmann::ordered_json(name.level) : nlohmann::ordered_json()},
                             {"lost_bytes", lost.lost_bytes},
                             {"stored_bytes", lost.stored_bytes},
                             {"disks", disk_numbers(lost.disks)}});
  }
  print_out("{}\n", dump_json(json));
}

// Those that are no levels, which MDFS computes from their images.
std::size_t count_files(const InodeNames& names) {
  return std::count_if(names.begin(), names.end(), [](const auto& name) { return name.second.level == 0; });
}

void print_text(const mdfs_ioc_volume& volume, const LostFiles& all, const InodeNames& names) {
  for (const auto& [inode, lost] : all.files) {
    std::string paths;
    for (const std::string& path : names.at(inode).paths) paths += (paths.empty() ? "" : ", also ") + printable(path);
    if (paths.empty()) paths = fmt::format("inode {} (no name)", inode);
    print_out("{}: {} of {} stored are on disk {}\n", paths, format_size(lost.lost_bytes),
              format_size(lost.stored_bytes), fmt::join(disk_numbers(lost.disks), ", "));
  }
  for (const std::uint32_t i : disk_numbers(all.disks)) print_out("{}\n", lost_disk_text(volume, i));
  if (all.files.empty())
    print_out("{}\n",
              all.disks == 0 ? "no disk is missing or has failed" : "no file has data on missing or failed disks");
  else if (count_files(names) == 0 && all.unreadable_items == 0)
    print_out("no file is lost: MDFS computes the listed levels from their images\n");
  if (all.unreadable_items > 0)
    print_out("{} parts of the tree cannot be read, so more files may be affected: run mdfsck\n", all.unreadable_items);
}

Status lost_command(const LostArguments& arguments) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(arguments.path));
  MDFS_TRY_ASSIGN(const LostFiles all, lost_files(arguments.path, volume));
  InodeNames names;
  for (const auto& [inode, lost] : all.files) names[inode];
  MDFS_TRY(find_names(arguments.path, names));
  if (arguments.json)
    print_json(volume, all, names);
  else
    print_text(volume, all, names);
  const std::size_t files = count_files(names);
  if (files == 0 && all.unreadable_items == 0) return {};
  return {Errc::kMissingDisk, fmt::format("{} file{} cannot be read completely", files, files == 1 ? "" : "s")};
}

}  // namespace

void add_lost_command(CLI::App& noun, Action& action) {
  const auto arguments = std::make_shared<LostArguments>();
  CLI::App* command = noun.add_subcommand("lost", "List the files with data on missing or failed disks");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->add_option("PATH", arguments->path, "Mount point, or a directory to list only the files in it")->required();
  command->callback([arguments, &action] { action = [arguments] { return lost_command(*arguments); }; });
}

}  // namespace mdfs::tools
