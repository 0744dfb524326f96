// What an image is, in one line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "geometry/geometry.h"
#include "mdfs/ioctl.h"

namespace mdfs::tools {

// "raw" or "zstd:3".
std::string codec_text(const geometry::Geometry& geometry);

// "PATH: axes yx, shape 640x960, 3 channels, u8, extents of 128x128, zstd:3, 4 disks".
std::string image_line(const std::string& path, const geometry::Geometry& geometry, const mdfs_ioc_geometry& made);

}  // namespace mdfs::tools
