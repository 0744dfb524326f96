// What stands on what: files behind loop devices and swap space, disks below device-mapper and partitions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "device/open.h"

namespace mdfs::device {

// Which kernel service stands on this regular file: "the loop device loop3", "the swap space"; else nothing.
std::optional<std::string> user_of_file(int fd);

// Somebody else who uses what the block device of this number stands on, as far as this machine's /sys shows it: "the
// file /srv/disk0 below it, which another program holds", "the loop device loop3, on the same file". Nothing if nobody
// does. `device` is open already, and does not count. For reading only readers are no conflict.
std::optional<std::string> user_below(dev_t device, OpenMode mode);

}  // namespace mdfs::device
