// A window in pieces that fit in memory, and the array that a window is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "geometry/geometry.h"
#include "imagefile/image_file.h"

namespace mdfs::tools {

// Calls `visit` for windows that together are `window`, in the order of its canonical bytes, each of at most
// limit_bytes where a single sample allows it. Pieces end at extents of the image where that is possible.
Status for_each_part(const geometry::Geometry& geometry, const geometry::Window& window, std::uint64_t limit_bytes,
                     const std::function<Status(const geometry::Window&)>& visit);

// Axes given as one index are gone; one picked channel is no dimension.
imagefile::ArrayInfo array_of_window(const geometry::Geometry& geometry, const geometry::Window& window);

}  // namespace mdfs::tools
