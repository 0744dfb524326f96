// SPDX-License-Identifier: Apache-2.0
#include "views/classic_tiff.h"

#include <array>

#include "base/checked.h"

namespace mdfs::views {
namespace {

constexpr std::uint64_t kClassicMagic = 42, kClassicInlineBytes = 4;

struct ClassicType {
  unsigned value_bytes = 0;   // 0: there is no such type
  unsigned number_bytes = 0;  // of which a value has one, a fraction two
};

ClassicType classic_type(std::uint64_t type) {
  constexpr std::array<ClassicType, 14> kTypes = {
      {{}, {1, 1}, {1, 1}, {2, 2}, {4, 4}, {8, 4}, {1, 1}, {1, 1}, {2, 2}, {4, 4}, {8, 4}, {4, 4}, {8, 8}, {4, 4}}};
  return type < kTypes.size() ? kTypes[type] : ClassicType();
}

}  // namespace

bool ClassicTiff::is_one() const {
  return bytes_.size() >= kHeadBytes && (little_ || bytes_.starts_with("MM")) && number(2, 2) == kClassicMagic;
}

std::uint64_t ClassicTiff::number(std::uint64_t at, unsigned bytes) const {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes_[at + (little_ ? bytes - 1 - i : i)]);
  return value;
}

std::optional<TiffField> ClassicTiff::field(std::uint64_t entry) const {
  TiffField field{static_cast<std::uint16_t>(number(entry, 2)),
                  static_cast<std::uint16_t>(number(entry + 2, 2)),
                  number(entry + 4, 4),
                  {}};
  const ClassicType type = classic_type(field.type);
  const std::uint64_t bytes = field.count * type.value_bytes;
  const std::uint64_t place = bytes <= kClassicInlineBytes ? entry + 8 : number(entry + 8, 4);
  if (bytes == 0 || !inside(place, bytes, bytes_.size())) return std::nullopt;
  for (std::uint64_t at = place; at < place + bytes; at += type.number_bytes)
    put_number(field.bytes, number(at, type.number_bytes), type.number_bytes);
  return field;
}

}  // namespace mdfs::views
