// Errors of a mounted volume, and what to do about each, in one line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "mdfs/ioctl.h"

namespace mdfs::tools {

// Messages; none if all disks are healthy and the volume can be written, or is read-only by an option.
std::vector<std::string> volume_errors(const mdfs_ioc_volume& volume);
// Messages about disks whose error counts have not been set to zero.
std::vector<std::string> disk_errors(const mdfs_ioc_volume& volume, const mdfs_ioc_disks& counted);
// Messages about disks that are much slower than the others at the moment.
std::vector<std::string> slow_disks(const mdfs_ioc_volume& volume, const mdfs_ioc_disks& counted);

}  // namespace mdfs::tools
