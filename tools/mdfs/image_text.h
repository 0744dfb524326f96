// Describes an image in one line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "geometry/geometry.h"
#include "imagefile/image_file.h"
#include "mdfs/ioctl.h"

namespace mdfs::tools {

// "raw" or "zstd:3".
std::string codec_text(const geometry::Geometry& geometry);

// "0.5um, 0.2um"; "unknown" for an axis without a spacing.
std::string spacing_text(const geometry::Geometry& geometry);

// "PATH: axes yx, shape 640x960, 3 channels, u8, extents of 128x128, zstd:3, 4 disks", and ", spacing 0.5um, 0.2um" if
// it is known for any axis.
std::string image_line(const std::string& path, const geometry::Geometry& geometry, const mdfs_ioc_geometry& made);

// Of a file that was written: "PATH: axes yxc, shape 640x960x3, u8, 1.76 MiB of samples".
std::string array_line(const std::string& path, const imagefile::ArrayInfo& array, std::uint64_t bytes);

}  // namespace mdfs::tools
