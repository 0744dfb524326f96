// What formats call the element types.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "geometry/geometry.h"

namespace mdfs::views {

// "": the format has no such type.
struct TypeNames {
  geometry::ElementType type;
  std::string_view zarr, nrrd, meta, envi, vrt, ome;
};
const TypeNames& names_of(geometry::ElementType type);

}  // namespace mdfs::views
