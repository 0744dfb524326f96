// What block devices stand on: files behind loop devices, disks below device-mapper and partitions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "device/open.h"

namespace mdfs::device {

// Somebody else who uses what the block device of this number stands on, as far as this machine's /sys shows it: "the
// file /srv/disk0 below it, which another program holds", "the loop device loop3, on the same file". Nothing if nobody
// does. `device` is open already, and does not count. For reading only readers are no conflict.
std::optional<std::string> user_below(dev_t device, OpenMode mode);

}  // namespace mdfs::device
