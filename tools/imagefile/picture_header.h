// The headers of DPX, Cineon and EXR files: fields with their types, names of channels, windows. As JSON:
//   {"format": "openexr", "channels": [..], "data": [x, y, width, height], "display": [x, y, width, height],
//    "fields": {"smpte:TimeCode": {"type": "timecode", "values": [..]}, ..}}
// with the names and types of OpenImageIO. Defaults are left out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <OpenImageIO/imageio.h>

#include <string>
#include <string_view>

namespace mdfs::imagefile {

bool has_header(std::string_view format);
// Empty: the header says nothing.
std::string header_of(std::string_view format, const OIIO::ImageSpec& spec);
// For a picture of the shape of `spec`. What does not fit it, or is no such JSON, is passed over.
void put_header(const std::string& header, OIIO::ImageSpec& spec);

}  // namespace mdfs::imagefile
