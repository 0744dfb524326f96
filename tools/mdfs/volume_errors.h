// What is wrong with a mounted volume, and what to do about it, in one line each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "mdfs/ioctl.h"

namespace mdfs::tools {

// Empty if all disks are healthy and nothing but an option keeps the volume from being written.
std::vector<std::string> volume_errors(const mdfs_ioc_volume& volume);
// Of disks with errors that nobody has forgotten yet.
std::vector<std::string> disk_errors(const mdfs_ioc_volume& volume, const mdfs_ioc_disks& counted);

}  // namespace mdfs::tools
