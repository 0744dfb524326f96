// Between the structures of the ioctls and the geometry of the core, on the side of the caller.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "geometry/geometry.h"
#include "mdfs/ioctl.h"

namespace mdfs::client {

// What a daemon answered; kNotSupported if it is more than this program knows.
Result<geometry::Geometry> to_geometry(const mdfs_ioc_geometry& from);
// A question: answers are zero, placement by the default tables over all disks.
mdfs_ioc_geometry from_geometry(const geometry::Geometry& from);
mdfs_ioc_window from_window(const geometry::Geometry& geometry, const geometry::Window& window);

// Would a daemon take this geometry for a new image? The error says what is wrong with it.
Status check_new_image(const mdfs_ioc_geometry& geometry);

}  // namespace mdfs::client
