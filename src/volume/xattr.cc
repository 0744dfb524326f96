// Extended attributes, and the access control lists among them.
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <array>

#include "volume/volume_impl.h"

namespace mdfs::volume {
namespace {

constexpr std::size_t kMaxNamesBytes = 65536;  // XATTR_LIST_MAX: what listxattr(2) can show
constexpr std::size_t kAttributesAtOnce = 64;

bool is_acl(std::string_view name) { return name == kAccessAclName || name == kDefaultAclName; }

// The names and limits of ext4.
Status check_xattr_name(std::string_view name) {
  if (is_acl(name)) return {};
  constexpr std::array<std::string_view, 3> kPrefixes{"user.", "trusted.", "security."};
  for (const std::string_view prefix : kPrefixes) {
    if (!name.starts_with(prefix)) continue;
    if (name.size() == prefix.size()) return Error{Errc::kInvalidArgument, "an attribute without a name"};
    if (name.size() > MDFS_MAX_NAME) return Error{Errc::kOutOfRange, "attribute names have at most 255 bytes"};
    if (name.find('\0') != std::string_view::npos) return Error{Errc::kInvalidArgument, "attribute name"};
    return {};
  }
  return Error{Errc::kNotSupported, "attribute " + std::string(name)};
}

// Calls `visit` with all attributes of the inode, in order.
template <typename Reader, typename Visit>
Status for_each_xattr(Reader& reader, Ino ino, const Visit& visit) {
  for (std::uint64_t next = 0;;) {
    MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                    reader.scan({ino, MDFS_KIND_XATTR, next}, {ino, MDFS_KIND_XATTR, UINT64_MAX}, kAttributesAtOnce));
    for (const store::Item& item : items) {
      MDFS_TRY_ASSIGN(const format::Xattr xattr, format::decode_xattr(item.value));
      visit(xattr);
    }
    if (items.size() < kAttributesAtOnce || items.back().key.offset == UINT64_MAX) return {};
    next = items.back().key.offset + 1;
  }
}

Status check_room_for_name(store::Transaction& transaction, Ino ino, std::string_view name) {
  std::size_t bytes = name.size() + 1;
  MDFS_TRY(for_each_xattr(transaction, ino, [&](const format::Xattr& xattr) { bytes += xattr.name.size() + 1; }));
  if (bytes > kMaxNamesBytes) return Error{Errc::kNoSpace, "the names of all attributes exceed 64 KiB"};
  return {};
}

}  // namespace

template <typename Reader>
Result<Acl> VolumeImpl::read_acl(Reader& reader, Ino ino, std::string_view name) {
  MDFS_TRY_ASSIGN(const XattrPlace place, find_xattr(reader, secret_, ino, name));
  if (!place.value) return Acl{};
  auto acl = parse_acl(*place.value);
  if (!acl.ok()) return Error{Errc::kCorrupt, "inode " + std::to_string(ino) + ": " + acl.error().where};
  return acl;
}
template Result<Acl> VolumeImpl::read_acl(store::Store&, Ino, std::string_view);
template Result<Acl> VolumeImpl::read_acl(store::Transaction&, Ino, std::string_view);

Status VolumeImpl::set_acl(Change& change, Ino ino, format::Inode& inode, std::string_view name, ConstBytes value) {
  if (inode.is_symlink()) return Error{Errc::kNotSupported, "access control lists of symbolic links"};
  MDFS_TRY_ASSIGN(const Acl acl, parse_acl(value));
  const bool is_access = name == kAccessAclName;
  if (!is_access && !inode.is_directory()) {
    if (!acl.empty()) return Error{Errc::kAccessDenied, "only directories have a default access control list"};
    return {};
  }
  if (is_access && !acl.empty()) inode.mode = (inode.mode & ~0777u) | mode_bits(acl);
  MDFS_TRY_ASSIGN(const XattrPlace place, find_xattr(change.transaction, secret_, ino, name));
  const bool stored = is_access ? !is_minimal(acl) : !acl.empty();
  if (stored && value.size() > MDFS_MAX_XATTR) return Error{Errc::kNoSpace, "length of an access control list"};
  if (stored) {
    put_xattr(change.transaction, ino, inode, place, name, encode_acl(acl));
  } else if (place.value) {
    erase_xattr(change.transaction, ino, place);
  }
  return {};
}

Status VolumeImpl::set_xattr(Ino ino, std::string_view name, ConstBytes value, XattrMode mode) {
  return set_xattr(ino, name, value, mode, nullptr);
}

Status VolumeImpl::set_access_acl(Ino ino, ConstBytes value, const Caller& caller) {
  return set_xattr(ino, kAccessAclName, value, XattrMode::kSet, &caller);
}

// `caller`: set-gid goes as with chmod(2); null: it stays.
Status VolumeImpl::set_xattr(Ino ino, std::string_view name, ConstBytes value, XattrMode mode, const Caller* caller) {
  MDFS_TRY(check_writable());
  MDFS_TRY(check_xattr_name(name));
  const Pin pin = table_.pin(ino);
  return change(store::Purpose::kNormal, [&](Change& change) -> Status {
    MDFS_TRY_ASSIGN(format::Inode inode, read_inode(change.transaction, ino));
    if (is_acl(name)) {
      MDFS_TRY(set_acl(change, ino, inode, name, value));
      const bool is_member = caller == nullptr || caller->uid == 0 || caller->is_in(inode.gid);
      if (!is_member) inode.mode &= ~std::uint32_t{S_ISGID};
    } else {
      if (name.starts_with("user.") && !inode.is_regular() && !inode.is_directory())
        return Error{Errc::kNotPermitted, "only files and directories have user attributes"};
      MDFS_TRY_ASSIGN(const XattrPlace place, find_xattr(change.transaction, secret_, ino, name));
      if (place.value && mode == XattrMode::kCreate) return Error{Errc::kExists, std::string(name)};
      if (!place.value && mode == XattrMode::kReplace) return Error{Errc::kNoData, std::string(name)};
      if (value.size() > MDFS_MAX_XATTR) return Error{Errc::kNoSpace, "attribute values have at most 65536 bytes"};
      if (!place.value) MDFS_TRY(check_room_for_name(change.transaction, ino, name));
      put_xattr(change.transaction, ino, inode, place, name, value);
      if (name == "security.capability") pin->has_privileges = true;
    }
    inode.ctime_ns = change.now_ns;
    put_inode(change.transaction, ino, inode);
    return {};
  });
}

Result<ByteVector> VolumeImpl::get_xattr(Ino ino, std::string_view name) {
  MDFS_TRY(check_xattr_name(name));
  MDFS_TRY_ASSIGN(XattrPlace place, find_xattr(*store_, secret_, ino, name));
  if (!place.value) return Error{Errc::kNoData, std::string(name)};
  return std::move(*place.value);
}

Result<std::vector<std::string>> VolumeImpl::list_xattrs(Ino ino) {
  std::vector<std::string> names;
  MDFS_TRY(for_each_xattr(*store_, ino, [&](const format::Xattr& xattr) { names.push_back(xattr.name); }));
  return names;
}

Status VolumeImpl::remove_xattr(Ino ino, std::string_view name) {
  MDFS_TRY(check_writable());
  MDFS_TRY(check_xattr_name(name));
  return change(store::Purpose::kFreeing, [&](Change& change) -> Status {
    MDFS_TRY_ASSIGN(format::Inode inode, read_inode(change.transaction, ino));
    MDFS_TRY_ASSIGN(const XattrPlace place, find_xattr(change.transaction, secret_, ino, name));
    if (!place.value) {
      if (is_acl(name)) return {};  // as Linux has it
      return Error{Errc::kNoData, std::string(name)};
    }
    erase_xattr(change.transaction, ino, place);
    inode.ctime_ns = change.now_ns;
    put_inode(change.transaction, ino, inode);
    return {};
  });
}

}  // namespace mdfs::volume
