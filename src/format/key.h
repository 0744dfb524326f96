// The key of an item in the tree.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

#include "base/bytes.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

// mdfs_key: ordered by object, then kind, then offset.
struct Key {
  std::uint64_t object = 0;
  std::uint64_t kind = 0;  // MDFS_KIND_*
  std::uint64_t offset = 0;

  auto operator<=>(const Key&) const = default;
};

inline constexpr Key kMinKey{0, 0, 0};
inline constexpr Key kMaxKey{UINT64_MAX, UINT64_MAX, UINT64_MAX};

// Both need sizeof(mdfs_key) bytes from byte `offset` on (else abort).
inline void encode(const Key& key, MutableBytes out, std::size_t offset) {
  store_le<std::uint64_t>(out, offset + offsetof(mdfs_key, object), key.object);
  store_le<std::uint64_t>(out, offset + offsetof(mdfs_key, kind), key.kind);
  store_le<std::uint64_t>(out, offset + offsetof(mdfs_key, offset), key.offset);
}

inline Key decode_key(ConstBytes bytes, std::size_t offset) {
  return {load_le<std::uint64_t>(bytes, offset + offsetof(mdfs_key, object)),
          load_le<std::uint64_t>(bytes, offset + offsetof(mdfs_key, kind)),
          load_le<std::uint64_t>(bytes, offset + offsetof(mdfs_key, offset))};
}

}  // namespace mdfs::format
