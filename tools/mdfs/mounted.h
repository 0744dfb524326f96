// Mounted volumes seen from outside: images and ioctls on a path.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "geometry/geometry.h"
#include "mdfs/mdfs.h"

namespace mdfs::tools {

struct CloseImage {
  void operator()(mdfs_image* image) const { mdfs_close(image); }
};
using Image = std::unique_ptr<mdfs_image, CloseImage>;

// The error that a call of libmdfs left behind; `result` is its negative return value.
Error library_error(long result, const std::string& path);

// flags as mdfs_open.
Result<Image> open_image(const std::string& path, int flags);
Result<mdfs_ioc_geometry> image_info(mdfs_image& image, const std::string& path);

// Of any file or directory of a mounted volume; kInvalidArgument if the path is on none.
Result<mdfs_ioc_volume> volume_info(const std::string& path);
// Reads, writes and errors of each disk; `reset`: error counts are set to zero.
Result<mdfs_ioc_disks> disk_counters(const std::string& path, bool reset = false);
// For ESTALE of a request that would write: what is wrong, and what to do.
Error stale_disk_error(const std::string& path);
// Errors of the volume and of its disks, a line each (volume_errors.h).
std::vector<std::string> all_errors(const mdfs_ioc_volume& volume, const std::string& path);
// Figures of the modelled disks so far; nothing if the disks are not modelled.
Result<std::optional<mdfs_ioc_model>> model_info(const std::string& path);

// How an image lies on its disks; of the volume's images, nothing if it cannot be told.
Result<mdfs_ioc_fragmentation> image_fragmentation(const std::string& path);
std::optional<mdfs_ioc_fragmentation> volume_fragmentation(const std::string& path);
// "fragmentation 1.32, ..: ..", a line.
std::string fragmentation_text(const mdfs_ioc_fragmentation& fragmentation);
// Its figures as an object of JSON in one line.
std::string fragmentation_json(const mdfs_ioc_fragmentation& fragmentation, bool of_volume);

}  // namespace mdfs::tools
