// Finding the disks of a volume by what their labels say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/uuid.h"
#include "format/label.h"

namespace mdfs::device {

// The first readable label of a block device or regular file, looked at without a lock. kForeignDisk: there is none;
// kNewerFormat: of a later version; or the error of opening it.
Result<format::Label> read_label(const std::string& path);

struct FoundDisks {
  Uuid volume_uuid;
  std::string volume_name;
  std::vector<std::string> paths;    // one for each member that was found, in order of their index
  std::vector<std::string> missing;  // "disk 2 (uuid)" for each that was not
};

// All members of the volume that `named` are of: block devices, files, directories whose entries are tried, or
// "UUID=..." of the volume, whose disks are looked for among the block devices of the machine. What is not named is
// looked for beside the named files, or among the block devices if one of them is named. A disk that nobody names is
// taken only if it knows a commit that the named ones know, or if none is named, that most of them know: anybody who
// can write to a device can give it a label. Which of those that are taken hold the newest commit is not looked at
// here. Errors name the disk: kForeignDisk (no volume on it, disks of two volumes, or disks that would be left out
// though they are as many as those that are taken), kInvalidArgument (the same disk twice, or two copies of it).
Result<FoundDisks> find_disks(const std::vector<std::string>& named);

}  // namespace mdfs::device
