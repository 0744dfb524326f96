// SPDX-License-Identifier: Apache-2.0
#include "imagefile/oiio_metadata.h"

#include <OpenImageIO/tiffutils.h>

#include <algorithm>
#include <array>
#include <exception>

#include "base/checked.h"
#include "imagefile/byte_source.h"
#include "imagefile/picture_header.h"
#include "imagefile/tiff_fields.h"

namespace mdfs::imagefile {
namespace {

// Fields of EXIF that are none of "Exif:" and "GPS:", and tell of the picture.
constexpr std::array<std::string_view, 11> kExifFields = {"Make",         "Model",        "DateTime",        "Artist",
                                                          "Copyright",    "ExposureTime", "FNumber",         "Rating",
                                                          "HostComputer", "DocumentName", "ImageDescription"};

bool starts_with(const OIIO::ParamValue& field, std::string_view prefix) {
  return std::string_view(field.name().c_str(), field.name().size()).starts_with(prefix);
}

// Blocks of which the library knows no field stay empty.
bool has_exif(const OIIO::ImageSpec& spec) {
  if (spec.get_int_attribute("Orientation", 1) != 1) return true;
  return std::any_of(spec.extra_attribs.begin(), spec.extra_attribs.end(), [](const OIIO::ParamValue& field) {
    const std::string_view name(field.name().c_str(), field.name().size());
    return name.starts_with("Exif:") || name.starts_with("GPS:") ||
           std::find(kExifFields.begin(), kExifFields.end(), name) != kExifFields.end();
  });
}

}  // namespace

Metadata metadata_of(std::string_view format, OIIO::ImageSpec spec, bool is_whole) {
  Metadata metadata;
  const auto put = [&](std::string_view block, std::string bytes) {
    if (!bytes.empty()) metadata.blocks.emplace(block, std::move(bytes));
  };
  if (const OIIO::ParamValue* icc = spec.find_attribute("ICCProfile"); icc != nullptr)
    put(kIccBlock, std::string(static_cast<const char*>(icc->data()), icc->datasize()));
  spec.erase_attribute("ICCProfile");
  if (format == "tiff") {
    if (is_whole) put(kDescriptionBlock, std::string(spec.get_string_attribute("ImageDescription")));
    spec.erase_attribute("ImageDescription");
  }
  const int bits = spec.get_int_attribute("oiio:BitsPerSample");
  if (bits > 0 && static_cast<std::size_t>(bits) != 8 * spec.format.basesize()) put(kBitsBlock, std::to_string(bits));
  std::vector<char> bytes;
  const auto& fields = spec.extra_attribs;
  if (std::any_of(fields.begin(), fields.end(), [](const auto& field) { return starts_with(field, "IPTC:"); })) {
    OIIO::encode_iptc_iim(spec, bytes);
    put(kIptcBlock, std::string(bytes.begin(), bytes.end()));
    bytes.clear();
  }
  put(kXmpBlock, OIIO::encode_xmp(spec, true));
  if (has_header(format)) {
    put(kHeaderBlock, header_of(format, spec));
    return metadata;
  }
  if (has_exif(spec)) {
    OIIO::encode_exif(spec, bytes, OIIO::endian::little);
    put(kExifBlock, std::string(bytes.begin(), bytes.end()));
  }
  return metadata;
}

void put_metadata(const Metadata& metadata, OIIO::ImageSpec& spec) {
  for (const auto& [block, bytes] : metadata.blocks) {
    if (block == kExifBlock) OIIO::decode_exif(OIIO::string_view(bytes.data(), bytes.size()), spec);
    if (block == kXmpBlock) OIIO::decode_xmp(OIIO::string_view(bytes.data(), bytes.size()), spec);
    if (block == kIptcBlock) OIIO::decode_iptc_iim(bytes.data(), static_cast<int>(bytes.size()), spec);
    if (block == kHeaderBlock) put_header(bytes, spec);
    if (block == kDescriptionBlock) spec.attribute("ImageDescription", bytes);
    if (block == kIccBlock)
      spec.attribute("ICCProfile", OIIO::TypeDesc(OIIO::TypeDesc::UINT8, static_cast<int>(bytes.size())), bytes.data());
  }
}

bool is_icc_of(std::string_view profile, int channels) {
  constexpr std::size_t kHeaderBytes = 132, kTagBytes = 12;
  constexpr std::uint64_t kIntents = 0xffff;
  constexpr unsigned kLastUnaligned = 3;  // version
  if (profile.size() < kHeaderBytes) return false;
  const auto number = [&](std::size_t at) { return to_integer(as_bytes(profile.substr(at, 4)), true); };
  const std::string_view space = profile.substr(16, 4), kind = profile.substr(12, 4), between = profile.substr(20, 4);
  const std::uint64_t tags = number(128);
  const bool is_aligned = profile.size() % 4 == 0 || static_cast<unsigned char>(profile[8]) <= kLastUnaligned;
  if (number(0) != profile.size() || !is_aligned || profile.substr(36, 4) != "acsp" || number(64) >= kIntents ||
      tags > (profile.size() - kHeaderBytes) / kTagBytes)
    return false;
  if (space != (channels < 3 ? "GRAY" : "RGB ") || kind == "abst" || kind == "link") return false;
  if (between != "XYZ " && between != "Lab ") return false;
  for (std::size_t tag = 0; tag < tags; ++tag) {
    const std::size_t at = kHeaderBytes + tag * kTagBytes;
    if (!inside(number(at + 4), number(at + 8), profile.size())) return false;
  }
  return true;
}

void erase_exif_directories(OIIO::ImageSpec& spec) {
  OIIO::ImageSpec kept = spec;
  kept.extra_attribs.clear();
  for (const OIIO::ParamValue& field : spec.extra_attribs)
    if (!starts_with(field, "Exif:") && !starts_with(field, "GPS:") && field.name() != "ExposureTime" &&
        field.name() != "FNumber")
      kept.extra_attribs.push_back(field);
  spec = kept;
}

unsigned film_bits(std::string_view format, const OIIO::ImageSpec& spec, const Metadata& metadata) {
  const auto bits = metadata.blocks.find(kBitsBlock);
  if (format != "dpx" || spec.format != OIIO::TypeDesc::UINT16 || bits == metadata.blocks.end()) return 0;
  return bits->second == "10" ? 10 : bits->second == "12" ? 12 : 0;
}

bool holds_block(std::string_view format, std::string_view block) {
  if (block == kBitsBlock) return false;  // film_bits() decides
  if (block == kHeaderBlock || block == kFirstFrameBlock) return block == kHeaderBlock && has_header(format);
  if (format == "tiff") return true;
  if (format == "jpeg") return block != kDescriptionBlock && block != kGeoBlock;
  return format == "png" && block == kIccBlock;  // it writes some fields of EXIF as texts, and drops the others
}

std::vector<MetadataField> describe_blocks(const Metadata& metadata) {
  std::vector<MetadataField> fields;
  try {
    OIIO::ImageSpec spec;
    put_metadata(metadata, spec);
    for (const OIIO::ParamValue& field : spec.extra_attribs)
      if (field.name() != "ICCProfile" && field.name() != "ImageDescription")
        fields.emplace_back(field.name().string(), field.type() == OIIO::TypeString
                                                       ? field.get_string()
                                                       : OIIO::ImageSpec::metadata_val(field, true));
  } catch (const std::exception&) {
    fields.clear();  // the blocks stay what they are
  }
  std::sort(fields.begin(), fields.end());
  return fields;
}

}  // namespace mdfs::imagefile
