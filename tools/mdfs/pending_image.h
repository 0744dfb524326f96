// An image that is being written to a mounted volume. It gets its name when it is complete and on the disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "geometry/geometry.h"
#include "mdfs/mdfs.h"
#include "mounted.h"
#include "support/exclusive_file.h"

namespace mdfs::tools {

// Removed unless it is finished.
class PendingImage {
 public:
  // Before anything is made. kIsDirectory; kInvalidArgument: names that end in @ lead to windows.
  static Status check_name(const std::string& path);
  // By anything, be it a link that leads nowhere.
  static bool is_taken(const std::string& path);
  // Like mdfs_create; `path` is the final name.
  static Result<PendingImage> create(const std::string& path, const mdfs_ioc_geometry& request);

  mdfs_image& image() const { return *image_; }
  const geometry::Geometry& geometry() const { return geometry_; }  // as it was made
  // A path to open it while it has no name.
  std::string descriptor_path() { return path_of_descriptor(pending_.file().fd()); }
  // Syncs, gives it its name (kExists, unless `force`), and syncs that; with a bar if wanted.
  Status finish(bool force, bool shows_bar);

 private:
  PendingImage(std::string path, FilePlace place, ExclusiveFile pending, Image image, geometry::Geometry geometry);
  Status sync();

  std::string path_;
  FilePlace place_;
  ExclusiveFile pending_;
  Image image_;
  geometry::Geometry geometry_;
};

}  // namespace mdfs::tools
