// Finds the disks of a volume by their labels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/uuid.h"
#include "format/label.h"

namespace mdfs::device {

// The first readable label of a block device or regular file, read without a lock. kForeignDisk: there is none.
// kNewerFormat: of a later version. Else the error of opening the disk, or of reading it where nothing can be read.
Result<format::Label> read_label(const std::string& path);

// The contents of a disk that has a label of the volume and is no member now. `members`: the UUIDs of the members.
enum class FormerMember : std::uint8_t {
  kHoldsNothing,  // it was only about to join, and holds no commit that may have been acknowledged
  kIsBehind,      // its newest commit was made together with a member: the volume builds on it
  kWrittenApart,  // no member took part in its newest commit: it may hold files that the volume lacks
};
FormerMember look_at_former_member(const std::string& path, const format::Label& label, const std::set<Uuid>& members);

struct FoundDisks {
  Uuid volume_uuid;
  std::string volume_name;
  std::vector<std::string> paths;    // one for each member found, in order of the index
  std::vector<std::string> missing;  // "disk 2 (uuid)" for each member not found
  // Former members that were written apart from these disks. Found where the search looks, although all members are
  // named. Their files are not in the volume.
  std::vector<std::string> written_apart;
};

// Finds all members of the volume of `named`: block devices, files, directories whose entries are tried, or
// "UUID=..." of the volume, whose disks are searched among the block devices of the machine. Other members are
// searched beside the named files, or among the block devices if one of them is named. A disk found by search is
// accepted only if it knows a commit of the named disks, or if none that holds a commit is named, of most disks: any
// user who can write to a device can write a label. The function does not check which disks hold the newest commit.
// A disk that the newest table of members lacks is left alone. kFork: such a disk was written without any member. If
// all members are named, and members ever changed, other disks are searched for such disks only, with a warning for
// each. Errors name the disk: kForeignDisk (no volume on it, disks of two volumes, or disks that would be left out
// although they are as many as the accepted ones), kInvalidArgument (the same disk twice, or two copies of it).
Result<FoundDisks> find_disks(const std::vector<std::string>& named);

}  // namespace mdfs::device
