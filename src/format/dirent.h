// Directory entries and extended attributes: items keyed by the hash of a name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

// Names with equal hashes take the numbers 0, 1, .. in the low byte of their cookies, the lowest that is free when
// the name is made; a reader looks at all of [first_cookie(name), first_cookie(name) + kCookieNumbers).
inline constexpr std::uint64_t kCookieNumbers = 256;
inline constexpr std::uint64_t kMinCookie = 256;

// XXH3-64 of the name with bit 63 and the low byte cleared; 256 where that would be zero.
std::uint64_t first_cookie(std::string_view name);
// Is this the cookie of a name with that hash?
inline bool cookie_fits(std::uint64_t cookie, std::string_view name) {
  return (cookie & ~(kCookieNumbers - 1)) == first_cookie(name);
}

// 1..255 bytes, neither "." nor "..", no slash, no NUL.
bool valid_name(std::string_view name);

// mdfs_dirent and its name.
struct Dirent {
  std::uint64_t inode = 0;
  std::uint8_t type = 0;  // d_type
  std::string name;
  bool operator==(const Dirent&) const = default;
};

ByteVector encode(const Dirent& dirent);
// Checks: dirent.length, dirent.inode (1 .. kMaxObject - 1), dirent.name.
Result<Dirent> decode_dirent(ConstBytes value);

// mdfs_xattr, its name and its value.
struct Xattr {
  std::string name;  // with its prefix: "user.comment"
  ByteVector value;
  bool operator==(const Xattr&) const = default;
};

ByteVector encode(const Xattr& xattr);
// Checks: xattr.length, xattr.name (1..255 bytes, no NUL), xattr.value (at most MDFS_MAX_XATTR).
Result<Xattr> decode_xattr(ConstBytes value);

}  // namespace mdfs::format
