// The place of damage that a read met.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "geometry/geometry.h"
#include "mdfs/mdfs.h"

namespace mdfs::tools {

// The error of reading `part` of a level. If an extent under it cannot be read, an error that names the first one and
// the remedy. Reads the extents again, one after another. `geometry` is that of the level.
Error with_damaged_extent(const Error& error, mdfs_image& image, const geometry::Geometry& geometry, unsigned level,
                          const geometry::Window& part, const std::string& path);

}  // namespace mdfs::tools
