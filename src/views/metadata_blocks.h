// Blocks of metadata of image files, in extended attributes of an image (doc/FORMAT.md, section 7).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mdfs::views {

inline constexpr std::string_view kMetadataPrefix = "user.mdfs.meta.";  // of the attributes
inline constexpr std::size_t kMetadataPartBytes = 65536;                // of a block; a shorter part is the last one

// Fields of the block of GeoTIFF fields: ModelPixelScale, ModelTiepoint, ModelTransformation, GeoKeyDirectory,
// GeoDoubleParams, GeoAsciiParams; metadata and the value without data of GDAL.
inline constexpr std::array<std::uint16_t, 8> kGeoTags = {33550, 33922, 34264, 34735, 34736, 34737, 42112, 42113};

// Fields that lead to the directories of EXIF and GPS, and one of EXIF that leads to another directory.
inline constexpr std::uint16_t kExifDirectory = 34665, kGpsDirectory = 34853, kInteroperabilityDirectory = 40965;

// The attribute that has a part of a block: 0, 1, ..
inline std::string metadata_attribute(std::string_view block, std::size_t part) {
  return part == 0 ? fmt::format("{}{}", kMetadataPrefix, block) : fmt::format("{}{}.{}", kMetadataPrefix, block, part);
}

}  // namespace mdfs::views
