// mdfs volume lost: the files that have data on disks which are missing or have failed, by their paths.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <ftw.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "commands.h"
#include "mounted.h"
#include "support/command.h"
#include "support/file.h"
#include "support/text.h"
#include "volume_text.h"

namespace mdfs::tools {
namespace {

struct LostArguments {
  std::string path;
  bool json = false;
};

struct Lost {
  std::uint64_t lost_bytes = 0, stored_bytes = 0, disks = 0;
  std::vector<std::string> paths;
};

struct AllLost {
  std::map<std::uint64_t, Lost> files;  // by inode
  std::uint64_t disks = 0, looked_at = 0, unreadable_items = 0;
};

Result<AllLost> ask(const std::string& path) {
  MDFS_TRY_ASSIGN(const File file, File::open(path, O_RDONLY));
  AllLost all;
  mdfs_ioc_lost page{};
  do {
    page.count = 0;
    if (::ioctl(file.fd(), MDFS_IOC_LOST, &page) != 0) return from_errno(errno, path + ": lost files");
    if (page.count > MDFS_IOC_LOST_ROWS) return Error{Errc::kCorrupt, path + ": the daemon's answer"};
    for (std::uint32_t i = 0; i < page.count; ++i)
      all.files[page.rows[i].inode] = {page.rows[i].lost_bytes, page.rows[i].stored_bytes, page.rows[i].disks, {}};
    all.disks |= page.disks;
    all.looked_at += page.looked_at;
    all.unreadable_items += page.unreadable_items;
  } while (page.next != 0);
  return all;
}

// nftw() has no place for a context.
thread_local std::map<std::uint64_t, Lost>* wanted = nullptr;

int note_path(const char* path, const struct stat* found, int, struct FTW*) {
  const auto lost = wanted->find(found->st_ino);
  if (lost != wanted->end()) lost->second.paths.emplace_back(path);
  return 0;
}

Status name_files(const std::string& top, AllLost& all) {
  if (all.files.empty()) return {};
  constexpr int kDescriptors = 64;
  wanted = &all.files;
  const int walked = ::nftw(top.c_str(), note_path, kDescriptors, FTW_PHYS | FTW_MOUNT);
  wanted = nullptr;
  return walked < 0 ? Status(from_errno(errno, top + ": looking for names")) : Status();
}

std::vector<std::uint32_t> numbers_of(std::uint64_t bits) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < MDFS_IOC_MAX_DISKS; ++i)
    if ((bits >> i & 1) != 0) numbers.push_back(i);
  return numbers;
}

std::string disk_text(const mdfs_ioc_volume& volume, std::uint32_t number) {
  const std::string name = text_of(volume.disks[number].name);
  return fmt::format("disk {} ({}{}) is {}", number, uuid_text(volume.disks[number].uuid),
                     name.empty() ? "" : ", " + name, state_name(volume.disks[number].state));
}

void print_json(const mdfs_ioc_volume& volume, const AllLost& all) {
  nlohmann::ordered_json json;
  json["output_version"] = kOutputVersion;
  json["uuid"] = uuid_text(volume.uuid);
  json["disks"] = nlohmann::ordered_json::array();
  for (const std::uint32_t i : numbers_of(all.disks)) {
    const std::string name = text_of(volume.disks[i].name);
    json["disks"].push_back({{"number", i},
                             {"uuid", uuid_text(volume.disks[i].uuid)},
                             {"path", name.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(name)},
                             {"state", state_name(volume.disks[i].state)}});
  }
  json["files_looked_at"] = all.looked_at;
  json["unreadable_items"] = all.unreadable_items;
  json["files"] = nlohmann::ordered_json::array();
  for (const auto& [inode, lost] : all.files)
    json["files"].push_back({{"inode", inode},
                             {"paths", lost.paths},
                             {"lost_bytes", lost.lost_bytes},
                             {"stored_bytes", lost.stored_bytes},
                             {"disks", numbers_of(lost.disks)}});
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void print_text(const mdfs_ioc_volume& volume, const AllLost& all) {
  for (const auto& [inode, lost] : all.files) {
    std::string names;
    for (const std::string& path : lost.paths) names += (names.empty() ? "" : ", also ") + printable(path);
    if (names.empty()) names = fmt::format("inode {} (no name)", inode);
    fmt::print("{}: {} of {} stored are on disk {}\n", names, format_size(lost.lost_bytes),
               format_size(lost.stored_bytes), fmt::join(numbers_of(lost.disks), ", "));
  }
  for (const std::uint32_t i : numbers_of(all.disks)) fmt::print("{}\n", disk_text(volume, i));
  if (all.files.empty())
    fmt::print("{}\n", all.disks == 0 ? "no disk is missing or has failed" : "no file has data on what is not there");
  if (all.unreadable_items > 0)
    fmt::print("{} parts of the tree cannot be read, and what they say of files is not known: run mdfsck\n",
               all.unreadable_items);
}

Status lost_command(const LostArguments& arguments) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(arguments.path));
  MDFS_TRY_ASSIGN(AllLost all, ask(arguments.path));
  MDFS_TRY(name_files(arguments.path, all));
  if (arguments.json)
    print_json(volume, all);
  else
    print_text(volume, all);
  if (all.files.empty() && all.unreadable_items == 0) return {};
  return {Errc::kMissingDisk,
          fmt::format("{} file{} cannot be read whole", all.files.size(), all.files.size() == 1 ? "" : "s")};
}

}  // namespace

void add_lost_command(CLI::App& noun, Action& action) {
  const auto arguments = std::make_shared<LostArguments>();
  CLI::App* command = noun.add_subcommand("lost", "Name the files that have data on disks which are missing or failed");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->add_option("PATH", arguments->path, "Mount point; of any other directory, only what lies in it is named")
      ->required();
  command->callback([arguments, &action] { action = [arguments] { return lost_command(*arguments); }; });
}

}  // namespace mdfs::tools
