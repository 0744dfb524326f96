// EXIF of an image (doc/FORMAT.md, attribute user.mdfs.meta.exif), as parts of a TIFF file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "views/tiff_field.h"

namespace mdfs::views {

struct ExifFields {
  std::vector<TiffField> page{};             // texts: maker, model, software, date, artist, copyright; by ascending tag
  std::vector<TiffDirectory> directories{};  // EXIF and GPS, by ascending tag
};

// Fields of unknown types, and those whose values are not in the block, are left out. So are directories within EXIF
// (interoperability), and what describes samples or a thumbnail. A maker note is kept as it is: places in it are those
// of the source. Nothing if the block is no TIFF file, of either order of bytes, or if values lie in it twice.
// Source: JEITA CP-3451C (Exif 2.3).
ExifFields parse_exif(std::string_view block);

}  // namespace mdfs::views
