// SPDX-License-Identifier: Apache-2.0
#include "views/tiff_field.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "base/checked.h"
#include "views/metadata_blocks.h"

namespace mdfs::views {
namespace {

constexpr std::string_view kBlockHead{"II\x2a\0\x08\0\0\0", 8};  // the directory follows
constexpr std::uint64_t kBlockEntryBytes = 12, kBlockInlineBytes = 4;

std::uint64_t to_number(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

ClassicType classic_type(std::uint64_t type) {
  constexpr std::array<ClassicType, 14> kTypes = {
      {{}, {1, 1}, {1, 1}, {2, 2}, {4, 4}, {8, 4}, {1, 1}, {1, 1}, {2, 2}, {4, 4}, {8, 4}, {4, 4}, {8, 8}, {4, 4}}};
  return type < kTypes.size() ? kTypes[type] : ClassicType();
}

void put_number(ByteVector& into, std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) into.push_back(static_cast<std::byte>(value >> (8 * i)));
}

TiffField text_field(std::uint16_t tag, std::string_view text) {
  TiffField field = bytes_field(tag, TiffType::kAscii, text.substr(0, text.find('\0')));
  field.bytes.push_back(std::byte{0});
  ++field.count;
  return field;
}

TiffField bytes_field(std::uint16_t tag, TiffType type, std::string_view bytes) {
  const ConstBytes values = as_bytes(bytes);
  return {tag, static_cast<std::uint16_t>(type), bytes.size(), ByteVector(values.begin(), values.end())};
}

std::vector<TiffField> rational_field(std::uint16_t tag, double value) {
  constexpr double kMost = 4294967295.0;
  if (!(value > 0) || value > kMost) return {};
  const double below = std::floor(kMost / std::max(value, 1.0));
  const double above = std::round(value * below);
  if (above < 1) return {};
  TiffField field{tag, static_cast<std::uint16_t>(TiffType::kRational), 1, {}};
  put_number(field.bytes, static_cast<std::uint64_t>(above), 4);
  put_number(field.bytes, static_cast<std::uint64_t>(below), 4);
  return {std::move(field)};
}

ByteVector tiff_entry(std::uint16_t tag, std::uint16_t type, std::uint64_t count, ConstBytes last) {
  MDFS_CHECK(last.size() <= kTiffInlineBytes);
  ByteVector entry;
  put_number(entry, tag, 2);
  put_number(entry, type, 2);
  put_number(entry, count, 8);
  entry.insert(entry.end(), last.begin(), last.end());
  entry.resize(kTiffEntryBytes);
  return entry;
}

std::vector<TiffField> parse_geo_fields(std::string_view block) {
  if (!block.starts_with(kBlockHead) || block.size() < kBlockHead.size() + 2) return {};
  const std::uint64_t count = to_number(block.substr(kBlockHead.size(), 2)), first = kBlockHead.size() + 2;
  if (count > kGeoTags.size() || !inside(first, count * kBlockEntryBytes, block.size())) return {};
  std::vector<TiffField> fields;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string_view entry = block.substr(first + i * kBlockEntryBytes, kBlockEntryBytes);
    TiffField field{static_cast<std::uint16_t>(to_number(entry.substr(0, 2))),
                    static_cast<std::uint16_t>(to_number(entry.substr(2, 2))),
                    to_number(entry.substr(4, 4)),
                    {}};
    const std::uint64_t bytes = field.count * classic_type(field.type).value_bytes;
    const std::uint64_t place =
        bytes <= kBlockInlineBytes ? first + i * kBlockEntryBytes + 8 : to_number(entry.substr(8));
    if (bytes == 0 || std::find(kGeoTags.begin(), kGeoTags.end(), field.tag) == kGeoTags.end() ||
        (!fields.empty() && field.tag <= fields.back().tag) || !inside(place, bytes, block.size()))
      return {};
    const ConstBytes values = as_bytes(block.substr(place, bytes));
    field.bytes.assign(values.begin(), values.end());
    fields.push_back(std::move(field));
  }
  return fields;
}

}  // namespace mdfs::views
