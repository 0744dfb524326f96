// Files with data on missing or failed disks, as the daemon reports them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "mdfs/ioctl.h"

namespace mdfs::tools {

struct LostFile {
  std::uint64_t lost_bytes = 0, stored_bytes = 0;
  std::uint64_t disks = 0;  // bits
};

struct LostFiles {
  std::map<std::uint64_t, LostFile> files;  // by inode
  std::uint64_t disks = 0;                  // missing or failed ones, as bits
  std::uint64_t looked_at = 0, unreadable_items = 0;
};

// Of the volume that contains the path, with a progress bar.
Result<LostFiles> lost_files(const std::string& path, const mdfs_ioc_volume& volume);

// "disk 1 (UUID, /dev/sdb) is missing"
std::string lost_disk_text(const mdfs_ioc_volume& volume, std::uint32_t number);

// The error of reading the file. If data of the file lie on missing disks, an error that names the disks and the
// remedy.
Error with_lost_disks(Error error, const std::string& path);
inline Status with_lost_disks(Status status, const std::string& path) {
  return status.ok() ? std::move(status) : Status(with_lost_disks(status.error(), path));
}

}  // namespace mdfs::tools
