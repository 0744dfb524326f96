// SPDX-License-Identifier: Apache-2.0
#include "views/tiff_field.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace mdfs::views {

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

}  // namespace mdfs::views
