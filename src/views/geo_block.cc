// SPDX-License-Identifier: Apache-2.0
#include "views/geo_block.h"

#include <algorithm>

#include "base/checked.h"
#include "views/classic_tiff.h"
#include "views/metadata_blocks.h"

namespace mdfs::views {
namespace {

constexpr std::string_view kGeoBlockHead{"II\x2a\0\x08\0\0\0", 8};  // the directory follows

}  // namespace

std::vector<TiffField> parse_geo_fields(std::string_view block) {
  constexpr std::uint64_t kFirst = kGeoBlockHead.size() + 2;
  const ClassicTiff tiff(block);
  if (!block.starts_with(kGeoBlockHead) || block.size() < kFirst) return {};
  const std::uint64_t count = tiff.number(kGeoBlockHead.size(), 2);
  if (count > kGeoTags.size() || !inside(kFirst, count * ClassicTiff::kEntryBytes, block.size())) return {};
  std::vector<TiffField> fields;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto field = tiff.field(kFirst + i * ClassicTiff::kEntryBytes);
    if (!field || field->type == static_cast<std::uint16_t>(TiffType::kIfd) ||
        std::find(kGeoTags.begin(), kGeoTags.end(), field->tag) == kGeoTags.end() ||
        (!fields.empty() && field->tag <= fields.back().tag))
      return {};
    fields.push_back(std::move(*field));
  }
  return fields;
}

}  // namespace mdfs::views
