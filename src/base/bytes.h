// Views of bytes, and little-endian numbers in them. Code decodes disk bytes with these functions only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/check.h"

namespace mdfs {

static_assert(std::endian::native == std::endian::little, "MDFS runs on little-endian machines");

// Borrowed bytes: the owner outlives the span.
using ConstBytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;
using ByteVector = std::vector<std::byte>;

// Read and write the little-endian number at byte `offset`. The caller has checked the length: a number that does not
// lie inside `bytes` aborts.
template <typename T>
T load_le(ConstBytes bytes, std::size_t offset) {
  static_assert(std::is_integral_v<T>);
  MDFS_CHECK(offset <= bytes.size() && sizeof(T) <= bytes.size() - offset);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <typename T>
void store_le(MutableBytes bytes, std::size_t offset, std::type_identity_t<T> value) {
  static_assert(std::is_integral_v<T>);
  MDFS_CHECK(offset <= bytes.size() && sizeof(T) <= bytes.size() - offset);
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

// The same bytes, borrowed.
inline ConstBytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view as_text(ConstBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace mdfs
