// Fields of on-disk structures by name: ondisk.h gives offset and type; the bytes are never cast. Offsets and sizes are
// in bytes. The caller has checked that the structure lies inside the bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "mdfs/ondisk.h"

// The number `field` of the structure `type` that starts at `base` of `bytes`.
#define MDFS_GET(bytes, base, type, field) \
  ::mdfs::load_le<decltype(type::field)>((bytes), (base) + offsetof(type, field))
#define MDFS_PUT(bytes, base, type, field, value) \
  ::mdfs::store_le<decltype(type::field)>((bytes), (base) + offsetof(type, field), (value))

namespace mdfs::format {

// Damage, reported by the name of the check that found it: "node.key-order".
inline Error corrupt(std::string_view check) { return Error{Errc::kCorrupt, std::string(check)}; }

// Passes the name of a check on as an error unless the condition holds.
#define MDFS_FORMAT_REQUIRE(condition, check)                \
  do {                                                       \
    if (!(condition)) return ::mdfs::format::corrupt(check); \
  } while (false)

inline Uuid get_uuid(ConstBytes bytes, std::size_t offset) {
  Uuid uuid;
  for (std::size_t i = 0; i < uuid.octets.size(); ++i) uuid.octets[i] = load_le<std::uint8_t>(bytes, offset + i);
  return uuid;
}

inline void put_uuid(MutableBytes bytes, std::size_t offset, const Uuid& uuid) {
  for (std::size_t i = 0; i < uuid.octets.size(); ++i) store_le<std::uint8_t>(bytes, offset + i, uuid.octets[i]);
}

// True if `text` stands at `offset`; false if the bytes end before.
inline bool has_text(ConstBytes bytes, std::size_t offset, std::string_view text) {
  return offset + text.size() <= bytes.size() && as_text(bytes.subspan(offset, text.size())) == text;
}

inline void put_text(MutableBytes bytes, std::size_t offset, std::string_view text) {
  const ConstBytes from = as_bytes(text);
  std::copy(from.begin(), from.end(), bytes.subspan(offset, text.size()).begin());
}

// Text in a field padded with zeros; bytes after the first zero are ignored.
inline std::string_view get_padded_text(ConstBytes bytes, std::size_t offset, std::size_t size) {
  const std::string_view text = as_text(bytes.subspan(offset, size));
  return text.substr(0, text.find('\0'));
}

// Nothing but zeros follows the text.
inline bool is_zero_padded(ConstBytes bytes, std::size_t offset, std::size_t size) {
  const std::string_view text = as_text(bytes.subspan(offset, size));
  return text.find_first_not_of('\0', std::min(text.find('\0'), size)) == std::string_view::npos;
}

inline void get_bytes(ConstBytes bytes, std::size_t offset, MutableBytes out) {
  const ConstBytes from = bytes.subspan(offset, out.size());
  std::copy(from.begin(), from.end(), out.begin());
}

inline void put_bytes(MutableBytes bytes, std::size_t offset, ConstBytes from) {
  std::copy(from.begin(), from.end(), bytes.subspan(offset, from.size()).begin());
}

inline bool all_zero(ConstBytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace mdfs::format
