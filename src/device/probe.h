// Recognises the contents and users of a disk, and wipes old signatures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "device/disk.h"

namespace mdfs::device {

// The recognised contents of this block device or file: "MDFS volume", "ext4 filesystem", "linux_raid_member (RAID)",
// "gpt partition table", "swap"; nothing for a disk without a signature. Opens it for reading, without a lock.
Result<std::optional<std::string>> recognise(const std::string& path);

// The contents that would be lost: the result of recognise(); else, for a regular file, "data" if any of
// its bytes is not zero. Skips holes, and ends at the first such byte.
Result<std::optional<std::string>> find_contents(const std::string& path);

// Overwrites every signature that recognise() and other programs would find, old MDFS labels at both ends included.
// The caller holds the disk (open_disk() for reading and writing) and has the user's consent. `held`: the disk that it
// holds; null for a remote disk that is free.
Status wipe_signatures(const std::string& path, Disk* held = nullptr);

// Text as udev encodes it in its properties: for display, and for the name of a link.
struct UdevText {
  std::string shown, encoded;
};
UdevText udev_text(const std::string& text);

}  // namespace mdfs::device
