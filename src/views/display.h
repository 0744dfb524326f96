// An image, and how it is shown.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "geometry/display.h"
#include "geometry/geometry.h"

namespace mdfs::views {

// Without a range only samples of the picture's own types are shown.
struct ShownImage {
  ShownImage(geometry::Geometry image, std::optional<geometry::DisplayRange> range = {})  // NOLINT: as it is
      : geometry(std::move(image)), display(range) {}
  geometry::Geometry geometry;
  std::optional<geometry::DisplayRange> display;
  unsigned stored_levels = 0;
};

}  // namespace mdfs::views
