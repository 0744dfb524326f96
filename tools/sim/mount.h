// An image on a mounted volume for the simulator: geometry, places of extents, and timed reads of windows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/result.h"
#include "geometry/geometry.h"
#include "mdfs/ioctl.h"
#include "sim/system.h"
#include "support/file.h"

namespace mdfs::tools {

// The requests that the mount plans for a window.
struct MountPlan {
  std::uint64_t cached_extents = 0;
  std::vector<std::uint64_t> requests;  // by disk
  std::vector<std::uint64_t> bytes;
};

// An open image of a mount: its geometry, its layout, the plans and reads of its windows. One thread.
class MountedImage {
 public:
  // kInvalidArgument: not an image on a mounted volume.
  static Result<MountedImage> open(const std::string& path);

  const geometry::Geometry& geometry() const { return geometry_; }
  unsigned disks() const { return disks_; }
  std::uint64_t base() const { return info_.placement_base; }
  std::uint64_t cache_bytes() const { return cache_bytes_; }  // that the mount uses at most
  // The machine that the mount is modelled as; absent: real disks.
  const std::optional<std::string>& modelled_hash() const { return modelled_hash_; }

  // Places of the extents. Writes back and commits first. The mount then has the extent table in memory, so that
  // timed reads do not include it.
  Result<std::shared_ptr<const sim::StoredImage>> stored();
  Result<MountPlan> plan(const geometry::Window& window);
  // Requests so far that the disks below answered later than their modelled time; 0 if they are real.
  Result<std::uint64_t> late_requests() const;
  // Binds the window and reads all of it; seconds from before the binding to the last byte.
  Result<double> timed_read(const geometry::Window& window);

 private:
  MountedImage() = default;
  Status look();

  File file_;
  mdfs_ioc_geometry info_{};
  geometry::Geometry geometry_;
  unsigned disks_ = 0;
  std::vector<double> disk_bytes_;
  std::uint32_t block_size_ = 0;
  std::uint64_t cache_bytes_ = 0;
  std::optional<std::string> modelled_hash_;
  AlignedBuffer buffer_;
};

}  // namespace mdfs::tools
