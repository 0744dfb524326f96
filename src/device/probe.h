// What a disk holds before MDFS takes it, who uses it, and wiping old signatures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace mdfs::device {

// What can be recognised on this block device or file: "MDFS volume", "ext4 filesystem", "linux_raid_member (RAID)",
// "gpt partition table", "swap"; nothing for a disk without a signature. Opens it for reading, without a lock.
Result<std::optional<std::string>> recognise(const std::string& path);

// What would be lost with this block device or file: what recognise() finds; else, of a regular file, "data" if any of
// its bytes is not zero. Holes are passed over, and the first such byte ends the search.
Result<std::optional<std::string>> find_contents(const std::string& path);

// Overwrites every signature that recognise() and other programs would find, old MDFS labels at both ends included.
// The caller holds the disk (open_disk() for reading and writing) and has asked the user.
Status wipe_signatures(const std::string& path);

// Text as udev keeps it in its properties: to be shown, and to be part of the name of a link.
struct UdevText {
  std::string shown, encoded;
};
UdevText udev_text(const std::string& text);

}  // namespace mdfs::device
