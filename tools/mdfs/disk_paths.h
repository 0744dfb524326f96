// Files that are disks of a mounted volume, as their paths show them now.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "mdfs/ioctl.h"

namespace mdfs::tools {

// A line for each disk in use whose path is free, or names another file. Disks whose path this user cannot examine have
// none, nor have paths that the volume returns cut.
std::vector<std::string> moved_disks(const mdfs_ioc_volume& volume);

// A line for each deleted disk, with the command that copies its contents back to its path. Only root finds them.
std::vector<std::string> rescues(const mdfs_ioc_volume& volume);

}  // namespace mdfs::tools
