// GeoTIFF fields of an image (doc/FORMAT.md, attribute user.mdfs.meta.geotiff).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "views/tiff_field.h"

namespace mdfs::views {

// The fields of the block by ascending tag. Empty if it is not a little-endian TIFF file whose directory has such
// fields alone, each once.
std::vector<TiffField> parse_geo_fields(std::string_view block);

}  // namespace mdfs::views
