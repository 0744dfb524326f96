// mdfs mount, mdfs umount, and the helper of mount(8).
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>

#include "base/log.h"
#include "commands.h"
#include "device/open.h"
#include "disk_command.h"
#include "fuse/daemon.h"
#include "fuse/mount_options.h"
#include "mounted.h"
#include "support/complete.h"
#include "support/streams.h"
#include "write_back.h"

namespace mdfs::tools {
namespace {

struct MountArguments {
  std::vector<std::string> options;
  std::vector<std::string> places;  // disks, then the mount point
};

void print_notice(const std::string& line) { print_err("mdfs: {}\n", line); }

// ---- another mount(8) of what is mounted

struct FlagWord {
  std::string_view word;
  unsigned long flag;  // of mount(2)
  bool set;
};
constexpr std::array kFlagWords = {
    FlagWord{"ro", MS_RDONLY, true},
    FlagWord{"rw", MS_RDONLY, false},
    FlagWord{"nosuid", MS_NOSUID, true},
    FlagWord{"suid", MS_NOSUID, false},
    FlagWord{"nodev", MS_NODEV, true},
    FlagWord{"dev", MS_NODEV, false},
    FlagWord{"noexec", MS_NOEXEC, true},
    FlagWord{"exec", MS_NOEXEC, false},
    FlagWord{"sync", MS_SYNCHRONOUS, true},
    FlagWord{"async", MS_SYNCHRONOUS, false},
    FlagWord{"noatime", MS_NOATIME, true},
    FlagWord{"atime", MS_NOATIME, false},
    FlagWord{"nodiratime", MS_NODIRATIME, true},
    FlagWord{"diratime", MS_NODIRATIME, false},
    FlagWord{"relatime", MS_RELATIME, true},
    FlagWord{"norelatime", MS_RELATIME, false},
};

// Of all lists, in order; the lists outlive them.
std::vector<std::string_view> words_of(const std::vector<std::string>& lists) {
  std::vector<std::string_view> words;
  for (const std::string_view list : lists)
    for (std::size_t begin = 0; begin <= list.size();) {
      const std::size_t end = std::min(list.find(',', begin), list.size());
      words.push_back(list.substr(begin, end - begin));
      begin = end + 1;
    }
  return words;
}

bool has_word(const std::vector<std::string>& lists, std::string_view word) {
  const std::vector<std::string_view> words = words_of(lists);
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Those of the mount as it is, by statvfs(3).
Result<unsigned long> flags_of(const std::string& place) {
  struct statvfs vfs {};
  if (::statvfs(place.c_str(), &vfs) != 0) return from_errno(errno, place);
  unsigned long flags = 0;
  for (const auto& [shown, flag] : {std::pair{ST_RDONLY, MS_RDONLY},
                                    {ST_NOSUID, MS_NOSUID},
                                    {ST_NODEV, MS_NODEV},
                                    {ST_NOEXEC, MS_NOEXEC},
                                    {ST_SYNCHRONOUS, MS_SYNCHRONOUS},
                                    {ST_NOATIME, MS_NOATIME},
                                    {ST_NODIRATIME, MS_NODIRATIME},
                                    {ST_RELATIME, MS_RELATIME}})
    if ((vfs.f_flag & static_cast<unsigned long>(shown)) != 0) flags |= static_cast<unsigned long>(flag);
  return flags;
}

// Of the words `discard` and `nodiscard` the last one; nothing if there is none.
std::optional<bool> wanted_discard(const std::vector<std::string>& lists) {
  std::optional<bool> wanted;
  for (const std::string_view word : words_of(lists))
    if (word == "discard" || word == "nodiscard") wanted = word == "discard";
  return wanted;
}

// The flags of the mount change, and `discard`; what else the daemon was told stays as it is. All else that mount(8)
// repeats here, from fstab(5) or as the kernel shows it, is passed over, as FUSE does in the kernel.
Status remount_command(const MountArguments& arguments) {
  const std::string& place = arguments.places.back();
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(place));
  MDFS_TRY_ASSIGN(unsigned long flags, flags_of(place));
  for (const std::string_view word : words_of(arguments.options))
    for (const FlagWord& known : kFlagWords)
      if (known.word == word) flags = known.set ? flags | known.flag : flags & ~known.flag;
  const bool read_only = (flags & MS_RDONLY) != 0;
  if (!read_only && volume.read_only != 0)
    return {Errc::kReadOnly, place + ": the volume was mounted like that; unmount it and mount it again"};
  if (const std::optional<bool> discard = wanted_discard(arguments.options)) {
    MDFS_TRY_ASSIGN(fuse::ControlClient daemon, daemon_of(volume));
    MDFS_TRY(daemon.change({*discard ? "discard on" : "discard off"}, {}));
  }
  if (::mount("none", place.c_str(), nullptr, MS_REMOUNT | flags, nullptr) != 0) return from_errno(errno, place);
  // Nothing is written from now on: what was is on the disks when this returns.
  return read_only && volume.read_only == 0 ? sync_with_bar(place) : Status{};
}

// As mount(8) says: "do not report errors for this device if it does not exist".
bool may_be_absent(const MountArguments& arguments) {
  if (!has_word(arguments.options, "nofail") || arguments.places.size() < 2) return false;
  return std::all_of(arguments.places.begin(), arguments.places.end() - 1, [](const std::string& disk) {
    return device::is_path(disk) && ::access(disk.c_str(), F_OK) != 0 && errno == ENOENT;
  });
}

Status mount_command(const MountArguments& arguments) {
  if (has_word(arguments.options, "remount") && !arguments.places.empty()) return remount_command(arguments);
  fuse::MountOptions options;
  for (const std::string& list : arguments.options) MDFS_TRY(fuse::parse_mount_options(list, options));
  MDFS_TRY(fuse::check_mount_options(options));
  if (arguments.places.size() < 2) return {Errc::kUsage, "mount: give one disk or more, and the mount point"};
  options.disks.assign(arguments.places.begin(), arguments.places.end() - 1);
  options.mountpoint = arguments.places.back();
  if (may_be_absent(arguments)) return {};
  return fuse::run_mount(options, print_notice);
}

// Nothing of ours is open on the mount when it goes. What the first step fails with is said by the second.
Status umount_command(const std::string& place, bool by_force) {
  MDFS_TRY(fuse::wait_until_free(place));  // a refusal does not wait for disks
  (void)sync_with_bar(place);
  return fuse::unmount(place, by_force, print_notice);
}

// Below the other options: the table of what -o takes.
std::string mount_option_help() {
  std::string text = "Mount options (-o), besides those of mount(8):\n";
  for (const fuse::MountOptionInfo& option : fuse::mount_option_table()) {
    const std::string name = option.value.empty() ? std::string(option.name)
                             : option.value.starts_with('[')
                                 ? fmt::format("{}[={}]", option.name, option.value.substr(1, option.value.size() - 2))
                                 : fmt::format("{}={}", option.name, option.value);
    text += fmt::format("  {:<32}{}\n", name, option.help);
  }
  return text;
}

// The same, for Tab: "ro", "cache=", "errors=eio".
std::vector<Choice> mount_choices() {
  std::vector<Choice> choices;
  for (const fuse::MountOptionInfo& option : fuse::mount_option_table()) {
    const std::string name(option.name), help(option.help);
    for (const std::string& value : CLI::detail::split(std::string(option.choices), ','))
      choices.push_back({name + (option.value.empty() ? "" : "=" + value), help});
    if (option.value.starts_with('[')) choices.push_back({name, help});
  }
  return choices;
}

}  // namespace

void add_mount_commands(CLI::App& app, Action& action) {
  const auto mount = std::make_shared<MountArguments>();
  CLI::App* command = app.add_subcommand("mount", "Mount a volume");
  CLI::Option* const list =
      command->add_option("-o,--options", mount->options, "Comma-separated mount options; may be given several times");
  list->take_all()->allow_extra_args(false);
  complete_with(list, mount_choices(), ChoiceOf::kList);
  command
      ->add_option("DISK", mount->places,
                   "Disks of the volume (one is enough) or a directory of disks, and last the mount point")
      ->required();
  command->footer(mount_option_help());
  command->callback([mount, &action] { action = [mount] { return mount_command(*mount); }; });

  const auto place = std::make_shared<std::string>();
  command = app.add_subcommand("umount", "Unmount a volume, and return when all data are on the disks");
  command->add_option("DIR", *place, "Mount point")->required();
  const auto by_force = std::make_shared<bool>(false);
  command->add_flag("--force", *by_force, "Unmount also if written data cannot be stored: they are lost");
  command->callback(
      [place, by_force, &action] { action = [place, by_force] { return umount_command(*place, *by_force); }; });
}

int mount_helper(int argc, char** argv) {
  constexpr const char* kProgram = "mount.mdfs";
  constexpr int kWrongInvocation = 1, kMountFailed = 32;  // mount(8)
  start_log(kProgram);
  MountArguments arguments;
  bool fake = false, understood = true;
  ::opterr = 0;
  for (int found = 0; (found = ::getopt(argc, argv, "sfnvrwo:N:t:")) != -1;) {
    if (found == 'o')
      arguments.options.emplace_back(::optarg);
    else if (found == 'r')
      arguments.options.emplace_back("ro");
    else if (found == 'w')
      arguments.options.emplace_back("rw");
    else if (found == 'f')
      fake = true;
    else if (found == '?')
      understood = false;
  }
  for (int i = ::optind; i < argc; ++i) arguments.places.emplace_back(argv[i]);
  if (!understood || arguments.places.size() != 2) {
    (void)report(kProgram, {Errc::kUsage, "usage: mount.mdfs DISK DIRECTORY [-sfnvrw] [-o OPTIONS]"});
    return kWrongInvocation;
  }
  if (fake) return 0;
  const Status status = mount_command(arguments);
  if (status.ok()) return 0;
  (void)report(kProgram, status.error());
  return status.error().code == Errc::kUsage ? kWrongInvocation : kMountFailed;
}

}  // namespace mdfs::tools
