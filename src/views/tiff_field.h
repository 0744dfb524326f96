// Fields of a TIFF directory, and the entries that name them in a BigTIFF file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace mdfs::views {

// Types of values, of TIFF 6.0 and BigTIFF.
enum class TiffType : std::uint16_t {
  kByte = 1,
  kAscii = 2,
  kShort = 3,
  kLong = 4,
  kRational = 5,
  kUndefined = 7,
  kIfd = 13,
  kLong8 = 16,
  kIfd8 = 18,
};

// Appends the lowest `bytes` bytes of a number, at most 8, little endian.
void put_number(ByteVector& into, std::uint64_t value, unsigned bytes);

struct TiffField {
  std::uint16_t tag = 0;
  std::uint16_t type = 0;   // a TiffType, or another type of TIFF that a source had
  std::uint64_t count = 0;  // of values
  ByteVector bytes;         // the values, little endian
  bool operator==(const TiffField&) const = default;
};
// A directory of its own, to which a field of the first page leads.
struct TiffDirectory {
  std::uint16_t tag = 0;            // of that field
  std::vector<TiffField> fields{};  // by ascending tag
};
TiffField text_field(std::uint16_t tag, std::string_view text);  // a null byte follows the text
TiffField bytes_field(std::uint16_t tag, TiffType type, std::string_view bytes);
// A positive number that a fraction of 32-bit numbers comes close to. Empty: there is none.
std::vector<TiffField> rational_field(std::uint16_t tag, double value);

inline constexpr std::uint64_t kTiffEntryBytes = 20;
inline constexpr std::uint64_t kTiffInlineBytes = 8;  // values up to this many bytes lie in the entry
// An entry. `last`, at most 8 bytes: its values, or else their offset in the file.
ByteVector tiff_entry(std::uint16_t tag, std::uint16_t type, std::uint64_t count, ConstBytes last);

}  // namespace mdfs::views
