// Splits a window into pieces that fit in memory, and gives the array shape of a window.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "geometry/cut.h"
#include "geometry/geometry.h"
#include "imagefile/image_file.h"

namespace mdfs::tools {

// Calls `visit` for windows that together are `window`, in the order of its canonical bytes, each of at most
// limit_bytes where a single sample allows it. Pieces end at extents of the image where that is possible.
Status for_each_part(const geometry::Geometry& geometry, const geometry::Window& window, std::uint64_t limit_bytes,
                     const std::function<Status(const geometry::Window&)>& visit);

// Calls `visit` for the parts of the window that lie in one extent each.
Status for_each_extent(const geometry::Geometry& geometry, const geometry::Window& window,
                       const std::function<Status(const geometry::Window&)>& visit);

// Rows and columns of a cut; channels last.
imagefile::ArrayInfo array_of_cut(const geometry::Geometry& geometry, const geometry::CutPlane& plane);

// Axes given as one index are dropped; a selected channel is not a dimension.
imagefile::ArrayInfo array_of_window(const geometry::Geometry& geometry, const geometry::Window& window);

}  // namespace mdfs::tools
