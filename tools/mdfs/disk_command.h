// Shared by the commands on disks of a mounted volume.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "commands.h"
#include "fuse/control.h"
#include "mdfs/ioctl.h"
#include "support/new_disks.h"

namespace mdfs::tools {

Result<fuse::ControlClient> daemon_of(const mdfs_ioc_volume& volume);
// By number, path or UUID.
Result<std::uint32_t> find_disk(const mdfs_ioc_volume& volume, const std::string& wanted);

struct AddArguments {
  std::string path;
  std::vector<std::string> disks;
  std::optional<std::uint16_t> weight;
  NewDiskOptions made;
  bool metadata = false;  // weight 0: for tree nodes alone
  bool dry_run = false, json = false, balance = false;
};
struct NewDisk {
  std::string path;
  std::uint64_t bytes = 0;
  std::uint16_t weight = 1;
  std::optional<std::uint32_t> number;  // none in a dry run
};
// Checks, makes, wipes and hands over the disks. A dry run stops after the check.
Result<std::vector<NewDisk>> join(const mdfs_ioc_volume& volume, const AddArguments& arguments);
void print_new_disks(const std::vector<NewDisk>& disks);

// Progress of disks being drained: the JSON of the operation, if there is one and it is known.
std::vector<std::string> drain_lines(const mdfs_ioc_volume& volume, const std::string& path);
std::optional<std::string> drain_json(const mdfs_ioc_volume& volume, const std::string& path);

// disk balance
void add_balance_command(CLI::App& noun, Action& action);
// Starts the operation, unless it is running, and waits.
Status balance_onto(const std::string& path, const std::vector<std::uint32_t>& disks, bool all_lacking,
                    const std::string& budget, bool dry_run, bool json);
// Progress of balancing, while it runs.
std::optional<std::string> balancing_line(const std::string& path);
std::optional<std::string> balancing_json(const std::string& path);

// disk probe
void add_probe_command(CLI::App& noun, Action& action);

// disk resize
void add_resize_command(CLI::App& noun, Action& action);
// Progress of shrinking a disk, while it runs.
std::optional<std::string> resizing_line(const std::string& path);
std::optional<std::string> resizing_json(const std::string& path);

// disk remove, replace
// Files that stay on a disk, by inode: "; inodes 2 3", the first ones; empty if there are none.
std::string stuck_text(const mdfs_ioc_operation& operation);
void add_drain_commands(CLI::App& noun, Action& action);

}  // namespace mdfs::tools
