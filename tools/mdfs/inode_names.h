// Names of inodes, found by walking below a directory of a mounted volume.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace mdfs::tools {

struct InodeName {
  std::vector<std::string> paths;  // none: the inode has no name below the directory
  std::uint32_t level = 0;         // 1 or more: the inode is this stored level of the image with these paths
};
// By inode, those that are requested.
using InodeNames = std::map<std::uint64_t, InodeName>;

// Fills in the paths, in the order of the walk, which stays on the file system of `top` and ends after `most` entries.
// A stored level of an image has the image's path and its own number: "scan (level 2)". Images are asked for theirs if
// an inode has no path otherwise. Skips what the caller may not read. An error if `top` itself cannot be read.
Status find_names(const std::string& top, InodeNames& names, std::uint64_t most = UINT64_MAX);

}  // namespace mdfs::tools
