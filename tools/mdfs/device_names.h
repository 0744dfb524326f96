// The names of a disk that stay when it is plugged in elsewhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace mdfs::tools {

struct DeviceNames {
  std::string by_id;   // "/dev/disk/by-id/ata-..."; empty: none
  std::string serial;  // as the device says it; empty: not known
};

// Of a block device, or of a partition on one; of anything else none. `links` are what udev keeps, `devices` what the
// kernel says.
DeviceNames device_names(const std::string& path, const std::string& links = "/dev/disk/by-id",
                         const std::string& devices = "/sys/class/block");

}  // namespace mdfs::tools
