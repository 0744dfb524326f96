// mdfs mount, mdfs umount, and the helper of mount(8).
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/log.h"
#include "commands.h"
#include "fuse/daemon.h"
#include "fuse/mount_options.h"
#include "write_back.h"

namespace mdfs::tools {
namespace {

struct MountArguments {
  std::vector<std::string> options;
  std::vector<std::string> places;  // disks, then the mount point
};

void print_notice(const std::string& line) { fmt::print(stderr, "mdfs: {}\n", line); }

Status mount_command(const MountArguments& arguments) {
  fuse::MountOptions options;
  for (const std::string& list : arguments.options) MDFS_TRY(fuse::parse_mount_options(list, options));
  if (arguments.places.size() < 2) return {Errc::kUsage, "mount: one disk or more and the mount point are wanted"};
  options.disks.assign(arguments.places.begin(), arguments.places.end() - 1);
  options.mountpoint = arguments.places.back();
  return fuse::run_mount(options, print_notice);
}

// Nothing of ours is open on the mount when it goes. What the first step fails with is said by the second.
Status umount_command(const std::string& place) {
  (void)sync_with_bar(place);
  return fuse::unmount(place, print_notice);
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

// As mount(8) says: "do not report errors for this device if it does not exist".
bool may_be_absent(const MountArguments& arguments) {
  const bool nofail = std::any_of(arguments.options.begin(), arguments.options.end(), [](const std::string& list) {
    return (',' + list + ',').find(",nofail,") != std::string::npos;
  });
  return nofail && ::access(arguments.places.front().c_str(), F_OK) != 0 && errno == ENOENT;
}

}  // namespace

void add_mount_commands(CLI::App& app, Action& action) {
  const auto mount = std::make_shared<MountArguments>();
  CLI::App* command = app.add_subcommand("mount", "Mount a volume");
  command->add_option("-o,--options", mount->options, "Comma list of mount options; may be given several times")
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option("DISK", mount->places,
                   "One disk of the volume or more, or a directory that holds them; last of all the mount point")
      ->required();
  command->footer(mount_option_help());
  command->callback([mount, &action] { action = [mount] { return mount_command(*mount); }; });

  const auto place = std::make_shared<std::string>();
  command = app.add_subcommand("umount", "Unmount a volume; returns when the disks hold everything");
  command->add_option("DIR", *place, "Mount point")->required();
  command->callback([place, &action] { action = [place] { return umount_command(*place); }; });
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
  if (fake || may_be_absent(arguments)) return 0;
  const Status status = mount_command(arguments);
  if (status.ok()) return 0;
  (void)report(kProgram, status.error());
  return status.error().code == Errc::kUsage ? kWrongInvocation : kMountFailed;
}

}  // namespace mdfs::tools
