// Fields that OpenImageIO does not read or write, or not all of: copied from a TIFF file, and added to another one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "imagefile/tiff_directory.h"
#include "support/file.h"

namespace mdfs::imagefile {

// The name of the block (metadata.h) with fields of GeoTIFF.
inline constexpr std::string_view kGeoBlock = "geotiff";

// Of a page, as a little-endian TIFF file whose directory has these fields alone. Empty: the page has none.
Result<std::string> read_geo_fields(ByteSource& bytes, const TiffFile& file, std::uint64_t page);
// The directories of EXIF and GPS of a page with all of their fields, and the fields of the page that tell of the
// camera, as an EXIF block. Empty: the page has no such directory.
Result<std::string> read_exif_fields(ByteSource& bytes, const TiffFile& file, std::uint64_t page);
// Adds the fields of GeoTIFF, and the directories of an EXIF block, to the first directory of a complete little-endian
// file, which is written again behind its end. Damaged fields are passed over. `file` is open for reading and writing.
Status add_fields(tools::File& file, const std::string& geo_fields, const std::string& exif);

}  // namespace mdfs::imagefile
