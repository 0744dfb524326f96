// Directory entries and extended attributes.
// SPDX-License-Identifier: Apache-2.0
#include "format/dirent.h"

#include <algorithm>

#include "format/fields.h"
#include "format/limits.h"

namespace mdfs::format {
namespace {

void append(ByteVector& out, ConstBytes bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

// Parts of the value of an attribute.
bool fits(std::size_t first, std::uint32_t rest) {
  if (first < MDFS_XATTR_FIRST) return rest == 0;
  return first == MDFS_XATTR_FIRST && rest <= MDFS_MAX_XATTR - MDFS_XATTR_FIRST;
}

}  // namespace

ByteVector encode(const NameSecret& secret) {
  ByteVector out(sizeof(mdfs_secret));
  for (std::size_t i = 0; i < secret.size(); ++i) store_le<std::uint64_t>(out, i * sizeof secret[i], secret[i]);
  return out;
}

Result<NameSecret> decode_secret(ConstBytes value) {
  MDFS_FORMAT_REQUIRE(value.size() == sizeof(mdfs_secret), "secret.length");
  NameSecret secret;
  for (std::size_t i = 0; i < secret.size(); ++i) secret[i] = load_le<std::uint64_t>(value, i * sizeof secret[i]);
  return secret;
}

std::uint64_t first_cookie(const NameSecret& secret, std::string_view name) {
  return kMinCookie + siphash(secret, as_bytes(name)) % kFirstCookies;
}

bool valid_name(std::string_view name) {
  return !name.empty() && name.size() <= MDFS_MAX_NAME && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

ByteVector encode(const Dirent& dirent) {
  MDFS_CHECK(valid_name(dirent.name) && dirent.inode != 0 && dirent.inode < kMaxObject);
  ByteVector out(sizeof(mdfs_dirent));
  MDFS_PUT(out, 0, mdfs_dirent, inode, dirent.inode);
  MDFS_PUT(out, 0, mdfs_dirent, type, dirent.type);
  MDFS_PUT(out, 0, mdfs_dirent, name_length, static_cast<std::uint8_t>(dirent.name.size()));
  append(out, as_bytes(dirent.name));
  return out;
}

Result<Dirent> decode_dirent(ConstBytes value) {
  MDFS_FORMAT_REQUIRE(value.size() > sizeof(mdfs_dirent), "dirent.length");
  Dirent dirent;
  dirent.inode = MDFS_GET(value, 0, mdfs_dirent, inode);
  dirent.type = MDFS_GET(value, 0, mdfs_dirent, type);
  const std::size_t length = MDFS_GET(value, 0, mdfs_dirent, name_length);
  MDFS_FORMAT_REQUIRE(value.size() == sizeof(mdfs_dirent) + length, "dirent.length");
  MDFS_FORMAT_REQUIRE(dirent.inode != 0 && dirent.inode < kMaxObject, "dirent.inode");
  dirent.name = as_text(value.subspan(sizeof(mdfs_dirent)));
  MDFS_FORMAT_REQUIRE(valid_name(dirent.name), "dirent.name");
  return dirent;
}

Xattr make_xattr(std::string_view name, ConstBytes value) {
  const ConstBytes first = value.first(std::min<std::size_t>(value.size(), MDFS_XATTR_FIRST));
  return {std::string(name), {first.begin(), first.end()}, static_cast<std::uint32_t>(value.size() - first.size())};
}

ByteVector encode(const Xattr& xattr) {
  MDFS_CHECK(!xattr.name.empty() && xattr.name.size() <= MDFS_MAX_NAME && fits(xattr.first.size(), xattr.rest_length));
  ByteVector out(sizeof(mdfs_xattr));
  MDFS_PUT(out, 0, mdfs_xattr, name_length, static_cast<std::uint16_t>(xattr.name.size()));
  MDFS_PUT(out, 0, mdfs_xattr, value_length, static_cast<std::uint16_t>(xattr.first.size()));
  MDFS_PUT(out, 0, mdfs_xattr, rest_length, xattr.rest_length);
  append(out, as_bytes(xattr.name));
  append(out, xattr.first);
  return out;
}

Result<Xattr> decode_xattr(ConstBytes value) {
  MDFS_FORMAT_REQUIRE(value.size() >= sizeof(mdfs_xattr), "xattr.length");
  const std::size_t name_length = MDFS_GET(value, 0, mdfs_xattr, name_length);
  const std::size_t value_length = MDFS_GET(value, 0, mdfs_xattr, value_length);
  MDFS_FORMAT_REQUIRE(value.size() == sizeof(mdfs_xattr) + name_length + value_length, "xattr.length");
  MDFS_FORMAT_REQUIRE(name_length >= 1 && name_length <= MDFS_MAX_NAME, "xattr.name");
  MDFS_FORMAT_REQUIRE(value_length <= MDFS_XATTR_FIRST, "xattr.value");
  Xattr xattr;
  xattr.rest_length = MDFS_GET(value, 0, mdfs_xattr, rest_length);
  MDFS_FORMAT_REQUIRE(fits(value_length, xattr.rest_length), "xattr.rest");
  xattr.name = as_text(value.subspan(sizeof(mdfs_xattr), name_length));
  MDFS_FORMAT_REQUIRE(xattr.name.find('\0') == std::string::npos, "xattr.name");
  const ConstBytes bytes = value.subspan(sizeof(mdfs_xattr) + name_length);
  xattr.first.assign(bytes.begin(), bytes.end());
  return xattr;
}

}  // namespace mdfs::format
