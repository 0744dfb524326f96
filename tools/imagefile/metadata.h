// Metadata of an image file, beside its samples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mdfs::imagefile {

// Blocks of bytes in standard forms, by name: what one format holds can go into another one.
inline constexpr std::string_view kIccBlock = "icc";                  // an ICC profile
inline constexpr std::string_view kExifBlock = "exif";                // as in a JPEG file, without its "Exif" and zeros
inline constexpr std::string_view kXmpBlock = "xmp";                  // an XMP packet
inline constexpr std::string_view kIptcBlock = "iptc";                // IPTC-IIM records
inline constexpr std::string_view kDescriptionBlock = "description";  // ImageDescription of TIFF: text or OME-XML

inline constexpr std::string_view kHeaderBlock = "header";           // JSON: picture_header.h
inline constexpr std::string_view kBitsBlock = "bits";               // of a sample in the file, if they were scaled
inline constexpr std::string_view kFirstFrameBlock = "first_frame";  // of a sequence: its number as decimal text

struct Metadata {
  std::map<std::string, std::string, std::less<>> blocks;
  bool operator==(const Metadata&) const = default;
};

// A name of a block as people know it; the name itself if it is unknown.
inline std::string_view title_of_block(std::string_view name) {
  if (name == kIccBlock) return "ICC profile";
  if (name == kExifBlock) return "EXIF";
  if (name == kXmpBlock) return "XMP";
  if (name == kIptcBlock) return "IPTC";
  if (name == kDescriptionBlock) return "ImageDescription";
  if (name == kHeaderBlock) return "header";
  if (name == kBitsBlock) return "number of bits";
  if (name == kFirstFrameBlock) return "number of the first frame";
  return name;
}

// A field of a block and its value, both for people.
using MetadataField = std::pair<std::string, std::string>;

}  // namespace mdfs::imagefile
