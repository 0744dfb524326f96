// Directory entries and extended attributes: items keyed by the hash of a name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "format/key.h"
#include "format/siphash.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

// The secret of a volume for the hash of its names (MDFS_KIND_SECRET). Without the secret a user cannot make
// names of equal hash. The secret never leaves the volume.
using NameSecret = SipKey;
// The value of the secret's item, which has the key kSecretKey.
ByteVector encode(const NameSecret& secret);
// Checks: secret.length.
Result<NameSecret> decode_secret(ConstBytes value);
inline constexpr Key kSecretKey{MDFS_OBJECT_NONE, MDFS_KIND_SECRET, 0};

// A name takes its first cookie, or if that is taken the lowest free one above. An object's `reach` (mdfs_inode) is the
// largest distance of any of its names ever: a reader examines [first_cookie(name), first_cookie(name) + reach].
// Removing a name moves no other, so the cookie of a name never changes.
inline constexpr std::uint64_t kMinCookie = 256;
inline constexpr std::uint64_t kMaxReach = UINT32_MAX;
inline constexpr std::uint64_t kFirstCookies = (std::uint64_t{1} << 63) - (std::uint64_t{1} << 33);
static_assert(kMinCookie + kFirstCookies + kMaxReach < std::uint64_t{1} << 63);

// 256 + SipHash-2-4 of the name modulo 2^63 - 2^33.
std::uint64_t first_cookie(const NameSecret& secret, std::string_view name);
// True if the name may have this cookie in an object of this `reach`.
inline bool cookie_fits(const NameSecret& secret, std::uint64_t cookie, std::string_view name, std::uint64_t reach) {
  const std::uint64_t first = first_cookie(secret, name);
  return cookie >= first && cookie - first <= reach;
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

// mdfs_xattr, its name and the first bytes of its value.
struct Xattr {
  std::string name;               // with its prefix: "user.comment"
  ByteVector first;               // at most MDFS_XATTR_FIRST bytes
  std::uint32_t rest_length = 0;  // bytes in other items; 0 unless `first` has its maximum length
  bool operator==(const Xattr&) const = default;
};

// The item of a name whose whole value has at most MDFS_MAX_XATTR bytes.
Xattr make_xattr(std::string_view name, ConstBytes value);
ByteVector encode(const Xattr& xattr);
// Checks: xattr.length, xattr.name (1..255 bytes, no NUL), xattr.value (the bounds above), xattr.rest (at most
// MDFS_MAX_XATTR - MDFS_XATTR_FIRST).
Result<Xattr> decode_xattr(ConstBytes value);

// Number of items of the kinds MDFS_KIND_XATTR_REST + 0 .. for a rest of this many bytes.
constexpr unsigned xattr_rests(std::uint32_t rest_length) { return (rest_length + MDFS_MAX_ITEM - 1) / MDFS_MAX_ITEM; }
// Bytes of the item with this number, which is below xattr_rests(rest_length).
constexpr std::uint32_t xattr_rest_bytes(std::uint32_t rest_length, unsigned number) {
  const std::uint32_t left = rest_length - number * MDFS_MAX_ITEM;
  return left < MDFS_MAX_ITEM ? left : MDFS_MAX_ITEM;
}

}  // namespace mdfs::format
