// The disk schemes: one table of what a disk can be, and of the functions that open it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/disk.h"
#include "device/open_mode.h"
#include "device/unique_fd.h"
#include "device/uring_context.h"

namespace mdfs::device {

// A disk is opened in two steps. `open` runs with the rights of the mounting user. `adopt` runs in the daemon, perhaps
// in another process, and makes a Disk of the descriptor. `open` takes the locks of files and devices, which belong to
// the descriptor. `adopt` takes the locks of remote disks, which belong to the Disk.
struct DiskScheme {
  std::string_view name;  // for messages: "block device"
  // True if names are paths: they have a full path, and other disks of the volume are searched beside the disk.
  bool is_path;
  // True if the disk is reached over a network: its daemon needs sockets, and its locks are those of adopt().
  bool is_remote = false;
  // True if a name given by a user is of such a disk. A scheme of URLs looks at the name, a scheme of paths at the
  // file.
  bool (*is_name)(const std::string& disk);
  // True if the open descriptor is of such a disk.
  bool (*is_open)(int fd);
  // As open_disk_descriptor(), for a name that is_name() accepted.
  Result<UniqueFd> (*open)(const std::string& disk, OpenMode mode);
  // As adopt_disk(), for a descriptor that is_open() accepted.
  Result<std::unique_ptr<Disk>> (*adopt)(const std::string& disk, UniqueFd fd, std::shared_ptr<UringContext> context);
  // Makes a disk of this size; with `replace` in the place of one that is not in use, whose contents are lost. Null: as
  // create_file_disk().
  Status (*create)(const std::string& disk, std::uint64_t size_bytes, bool replace) = nullptr;
  // Enlarges a disk that may be in use; a larger one stays as it is. Null: other programs do that.
  Status (*grow)(const std::string& disk, std::uint64_t size_bytes) = nullptr;
  // Removes a disk that is not in use. Null: it is a file to unlink.
  Status (*remove)(const std::string& disk) = nullptr;
  // As take_disk_over(). Null: its users are processes of this machine, which can be ended.
  Result<std::vector<std::string>> (*take_over)(const std::string& disk) = nullptr;
};

// The first row that accepts a name opens it.
std::span<const DiskScheme> scheme_table();

}  // namespace mdfs::device
