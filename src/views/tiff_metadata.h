// Metadata of an image, as fields of the first page of a TIFF file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "geometry/geometry.h"
#include "views/exif_block.h"
#include "views/tiff_field.h"
#include "volume/volume.h"

namespace mdfs::views {

// Blocks of metadata (doc/FORMAT.md, attributes user.mdfs.meta.*); empty: the image has none.
struct TiffMetadata {
  std::string description{}, icc{}, xmp{}, iptc{}, geotiff{};
  ExifFields exif{};
};
// Of an image. Blocks that would need more than this many bytes, together with those before them in the order above,
// are left out, so that an open file takes bounded memory.
inline constexpr std::uint64_t kMaxTiffMetadata = 1u << 20;
Result<TiffMetadata> read_tiff_metadata(volume::Volume& volume, volume::Ino image);

// By ascending tag: the description, else OME-XML if there are several pages or a known spacing; the spacing as
// resolution; the other blocks, of EXIF the texts. Descriptions in which ImageJ or tifffile count pages, and OME-XML of
// other pages, are replaced by OME-XML. A page with levels has no OME-XML: its readers would take the levels for
// missing pages.
std::vector<TiffField> tiff_fields(const geometry::Geometry& image, unsigned levels, const TiffMetadata& metadata);

}  // namespace mdfs::views
