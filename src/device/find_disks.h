// Finds the disks of a volume by their labels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/uuid.h"
#include "format/label.h"

namespace mdfs::device {

// The first readable label of a block device or regular file, read without a lock. kForeignDisk: there is none;
// kNewerFormat: of a later version; or the error of opening it.
Result<format::Label> read_label(const std::string& path);

// Has the disk with this label ever been a member of its volume? One that was only about to join holds no commit.
bool holds_commit(const std::string& path, const format::Label& label);

struct FoundDisks {
  Uuid volume_uuid;
  std::string volume_name;
  std::vector<std::string> paths;    // one for each member found, in order of the index
  std::vector<std::string> missing;  // "disk 2 (uuid)" for each member not found
};

// Finds all members of the volume of `named`: block devices, files, directories whose entries are tried, or
// "UUID=..." of the volume, whose disks are searched among the block devices of the machine. Other members are
// searched beside the named files, or among the block devices if one of them is named. A disk found by search is
// accepted only if it knows a commit of the named disks, or if none is named, of most disks: any user who
// can write to a device can write a label. The function does not check which disks hold the newest commit.
// A disk that the newest table of members lacks is left alone. kFork: such a disk was written without any member.
// Errors name the disk: kForeignDisk (no volume on it, disks of two volumes, or disks that would be left out
// although they are as many as the accepted ones), kInvalidArgument (the same disk twice, or two copies of it).
Result<FoundDisks> find_disks(const std::vector<std::string>& named);

}  // namespace mdfs::device
