// Finds dependencies: files behind loop devices and swap space, disks below device-mapper and partitions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "device/open_mode.h"

namespace mdfs::device {

// The kernel service that uses this regular file: "the loop device loop3", "the swap space"; else nothing.
std::optional<std::string> user_of_file(int fd);

// True if another program, or another opening of this one, holds the lock of this regular file, which open_disk()
// takes. Nothing if this user cannot tell.
std::optional<bool> is_file_in_use(const std::string& path, OpenMode mode = OpenMode::kReadWrite);

// Another user of the storage below the block device of this number, as far as this machine's /sys shows: "the
// file /srv/disk0 below it, which another program holds", "the loop device loop3, on the same file". Nothing if
// there is none. `device` is open already and does not count. For reading only, readers do not conflict.
std::optional<std::string> user_below(dev_t device, OpenMode mode);

}  // namespace mdfs::device
