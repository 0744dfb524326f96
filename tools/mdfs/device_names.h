// The names of a disk that do not depend on its port.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace mdfs::tools {

struct DeviceNames {
  std::string by_id;   // "/dev/disk/by-id/ata-..."; empty: none
  std::string serial;  // from the device; empty: unknown
};

// Of a block device or a partition; else none. `links` is the directory of udev's links, `devices` that of the
// kernel's devices.
DeviceNames device_names(const std::string& path, const std::string& links = "/dev/disk/by-id",
                         const std::string& devices = "/sys/class/block");

}  // namespace mdfs::tools
