// Converts between the structures of the ioctls and the geometry of the core, for the caller.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "geometry/geometry.h"
#include "geometry/window_spec.h"
#include "mdfs/ioctl.h"

namespace mdfs::client {

// Converts an answer of a daemon; kNotSupported if it has values unknown to this program.
Result<geometry::Geometry> to_geometry(const mdfs_ioc_geometry& from);
// A request: answer fields are zero, placement by the default tables over all disks.
mdfs_ioc_geometry from_geometry(const geometry::Geometry& from);
mdfs_ioc_window from_window(const geometry::Geometry& geometry, const geometry::Window& window);
// Of the image, or of one of its levels.
mdfs_ioc_window from_window(const geometry::Geometry& image, const geometry::LevelWindow& window);
// The geometry of a level in place of that of the image. A level has the bytes that whole slabs of the image make, so
// that those who count its slabs leave out what another program has begun to append. kOutOfRange: no such level.
Result<mdfs_ioc_geometry> level_info(const mdfs_ioc_geometry& image, std::uint32_t level);

// Checks that a daemon would accept this geometry for a new image. The error names the problem.
Status check_new_image(const mdfs_ioc_geometry& geometry);

}  // namespace mdfs::client
