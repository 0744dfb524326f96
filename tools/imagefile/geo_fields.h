// The fields of GeoTIFF, which OpenImageIO neither reads nor writes: copied from a file, and added to another one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "imagefile/tiff_directory.h"
#include "support/file.h"

namespace mdfs::imagefile {

// The name of the block (metadata.h).
inline constexpr std::string_view kGeoBlock = "geotiff";

// Of a page, as a little-endian TIFF file whose directory has these fields alone. Empty: the page has none.
Result<std::string> read_geo_fields(ByteSource& bytes, const TiffFile& file, std::uint64_t page);
// To the first directory of a complete little-endian file, which is written again behind its end. Damaged fields are
// passed over. `file` is open for reading and writing.
Status add_geo_fields(tools::File& file, const std::string& fields);

}  // namespace mdfs::imagefile
