// zarr.json of the group and of the array under ome.zarr/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "geometry/geometry.h"
#include "geometry/reduce.h"

namespace mdfs::views {

// True if OME-NGFF 0.5 has a place for the axes: at most one of time, first, then at most one of channels or another
// kind, then two or three of space (x, y, z).
bool has_ome_axes(const geometry::Geometry& geometry);

// The levels that the image stores.
struct ZarrLevels {
  unsigned count = 0;
  geometry::Reduction reduction = geometry::Reduction::kMean;
};
// A Zarr v3 group, ending in a newline. Its attributes are those of OME-NGFF 0.5 (multiscales with a dataset for each
// level, from "0", spacing as scale, 1 where it is not known, and the units that OME-NGFF has names for), or none if
// OME-NGFF has no place for the axes.
std::string zarr_group_json(const geometry::Geometry& image, const ZarrLevels& levels);
// A Zarr v3 array of a level of this geometry, of the shape and with the chunks of zarr_axes(), ending in a newline. A
// chunk that is missing is zeros. All chunks have one chain of codecs: `transpose`, if there are channels, since they
// are stored last, `bytes`, and `zstd` for an image with that codec.
std::string zarr_array_json(const geometry::Geometry& geometry);

}  // namespace mdfs::views
