// The options for a new image, shared by image create and image import.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "geometry/geometry.h"
#include "mdfs/ioctl.h"

namespace CLI {
class App;
}

namespace mdfs::tools {

struct ImageOptions {
  std::string axes, spacing, extent, codec, policy;
  std::optional<unsigned> disks, row_offset, plane_offset;

  void add_to(CLI::App& command);
  // --axes: kUsage names the option and what is allowed. To be called before the axes are used.
  Status check_axes() const;
  // Fills spacing, extent, policy and codec of a geometry whose rank, shape and type are set. Fields without an option
  // stay.
  Status apply(geometry::Geometry& geometry) const;
  // The structure for mdfs_create: the geometry and the requested placement.
  mdfs_ioc_geometry request(const geometry::Geometry& geometry) const;
};

// The error of creating an image, with the options instead of the fields of mdfs_ioc_geometry.
Error with_options(Error error);

}  // namespace mdfs::tools
