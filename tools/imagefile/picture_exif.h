// EXIF as it lies in a picture.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "imagefile/byte_source.h"

namespace mdfs::imagefile {

// The EXIF block of a JPEG or PNG file, byte for byte: OpenImageIO keeps the fields that it knows, and no notes of a
// camera's maker. Empty: it has none. The file has passed check_jpeg() or check_png(). Source: JEITA CP-3451C (Exif
// 2.3), 4.7.2; PNG, third edition, 11.3.4.3.
Result<std::string> read_jpeg_exif(ByteSource& bytes);
Result<std::string> read_png_exif(ByteSource& bytes);

// The longest block that a JPEG file has a place for.
inline constexpr std::size_t kMostJpegExifBytes = 65535 - 2 - 6;
// The first bytes of a JPEG file, at least to the start of its scan or all of it, with this block as its only EXIF.
std::string with_exif(ConstBytes start, std::string_view exif);

}  // namespace mdfs::imagefile
