// SPDX-License-Identifier: Apache-2.0
#include "views/tiff_metadata.h"

#include <algorithm>
#include <string_view>

#include "geometry/units.h"
#include "views/geo_block.h"
#include "views/metadata_blocks.h"
#include "views/ome_xml.h"
#include "views/tiff_layout.h"

namespace mdfs::views {
namespace {

using geometry::Geometry;

enum MetadataTag : std::uint16_t {
  kImageDescription = 270,
  kXResolution = 282,
  kYResolution = 283,
  kResolutionUnit = 296,
  kXmp = 700,
  kIptc = 33723,
  kIccProfile = 34675,
};
constexpr std::byte kCentimetre{3};  // as a unit of resolution

// A block of at most `room` bytes, which are taken from it. Empty: absent, or longer.
Result<std::string> read_block(volume::Volume& volume, volume::Ino image, std::string_view name, std::uint64_t& room) {
  std::string block;
  for (std::size_t part = 0;; ++part) {
    const auto bytes = volume.get_xattr(image, metadata_attribute(name, part));
    if (!bytes.ok() && bytes.error().code != Errc::kNoData) return bytes.error();
    if (!bytes.ok()) break;
    block += as_text(*bytes);
    if (block.size() > room) return std::string();
    if (bytes->size() < kMetadataPartBytes) break;
  }
  room -= block.size();
  return block;
}

bool counts_pages(std::string_view description) {
  return description.starts_with("ImageJ=") || description.starts_with("{\"shape\"");
}

// Readers of OME-XML take a level in the chain of directories for another page.
std::string description_of(const Geometry& image, unsigned levels, const std::string& kept) {
  const bool may_be_ome = levels == 0 || tiff_pages(image) > 1;
  const bool is_ome = kept.find("<OME") != std::string::npos;
  if (!kept.empty() && !counts_pages(kept) && (!is_ome || (may_be_ome && is_ome_xml_of(kept, image)))) return kept;
  if (!may_be_ome) return {};
  const bool is_measured =
      std::any_of(image.spacing.begin(), image.spacing.end(), [](double step) { return step > 0; });
  return tiff_pages(image) > 1 || is_measured ? ome_xml(image) : std::string();
}

// Samples per centimetre along an axis; 0 = unknown.
double resolution(const Geometry& image, char axis) {
  const std::size_t place = image.axes.find(axis);
  const double step = place == std::string::npos ? 0 : image.spacing[place] * geometry::centimetres(image.unit[place]);
  return step > 0 ? 1 / step : 0;
}

}  // namespace

Result<TiffMetadata> read_tiff_metadata(volume::Volume& volume, volume::Ino image) {
  TiffMetadata metadata;
  std::uint64_t room = kMaxTiffMetadata;
  MDFS_TRY_ASSIGN(metadata.description, read_block(volume, image, "description", room));
  MDFS_TRY_ASSIGN(metadata.icc, read_block(volume, image, "icc", room));
  MDFS_TRY_ASSIGN(metadata.xmp, read_block(volume, image, "xmp", room));
  MDFS_TRY_ASSIGN(metadata.iptc, read_block(volume, image, "iptc", room));
  MDFS_TRY_ASSIGN(metadata.geotiff, read_block(volume, image, "geotiff", room));
  MDFS_TRY_ASSIGN(const std::string exif, read_block(volume, image, "exif", room));
  metadata.exif = parse_exif(exif);
  return metadata;
}

std::vector<TiffField> tiff_fields(const Geometry& image, unsigned levels, const TiffMetadata& metadata) {
  std::vector<TiffField> fields;
  const std::string description = description_of(image, levels, metadata.description);
  if (!description.empty()) fields.push_back(text_field(kImageDescription, description));
  auto x = rational_field(kXResolution, resolution(image, 'x')),
       y = rational_field(kYResolution, resolution(image, 'y'));
  if (!x.empty() && !y.empty()) {
    fields.push_back(std::move(x.front()));
    fields.push_back(std::move(y.front()));
    fields.push_back({kResolutionUnit, static_cast<std::uint16_t>(TiffType::kShort), 1, {kCentimetre, std::byte{0}}});
  }
  const auto add = [&](MetadataTag tag, TiffType type, const std::string& block) {
    if (!block.empty()) fields.push_back(bytes_field(tag, type, block));
  };
  add(kXmp, TiffType::kByte, metadata.xmp);
  const std::vector<TiffField> geo = parse_geo_fields(metadata.geotiff);
  fields.insert(fields.end(), geo.begin(), geo.end());
  fields.insert(fields.end(), metadata.exif.page.begin(), metadata.exif.page.end());
  add(kIptc, TiffType::kUndefined, metadata.iptc);
  add(kIccProfile, TiffType::kUndefined, metadata.icc);
  std::stable_sort(fields.begin(), fields.end(), [](const auto& a, const auto& b) { return a.tag < b.tag; });
  return fields;
}

}  // namespace mdfs::views
