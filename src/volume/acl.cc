// POSIX access control lists.
// SPDX-License-Identifier: Apache-2.0
#include "volume/acl.h"

#include <fmt/format.h>
#include <linux/posix_acl_xattr.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>

namespace mdfs::volume {
namespace {

constexpr std::size_t kHeaderBytes = sizeof(posix_acl_xattr_header);
constexpr std::size_t kEntryBytes = sizeof(posix_acl_xattr_entry);

bool has_id(std::uint16_t tag) { return tag == AclEntry::kUser || tag == AclEntry::kGroup; }

Status check(const Acl& acl) {
  const auto bad = [](const char* what) {
    return Error{Errc::kInvalidArgument, std::string("access control list: ") + what};
  };
  unsigned seen = 0;
  std::uint16_t last = 0;
  for (const AclEntry& entry : acl) {
    if (entry.tag < last) return bad("the entries must be in the order of their tags");
    if (entry.permissions > 7) return bad("the permissions of an entry must be at most 7");
    if (has_id(entry.tag)) {
      if (entry.id == AclEntry::kNoId) return bad("the entry of a user or a group needs an id");
    } else if ((seen & entry.tag) != 0) {
      return bad("an entry without an id occurs twice");
    }
    seen |= entry.tag;
    last = entry.tag;
  }
  constexpr unsigned kNeeded = AclEntry::kUserObject | AclEntry::kGroupObject | AclEntry::kOther;
  if ((seen & kNeeded) != kNeeded) return bad("entries are needed for the owner, the group and others");
  if ((seen & (AclEntry::kUser | AclEntry::kGroup)) != 0 && (seen & AclEntry::kMask) == 0)
    return bad("entries of users and groups need a mask");
  return {};
}

AclEntry* find(Acl& acl, AclEntry::Tag tag) {
  const auto found = std::find_if(acl.begin(), acl.end(), [tag](const AclEntry& entry) { return entry.tag == tag; });
  return found == acl.end() ? nullptr : &*found;
}

std::uint16_t permissions_of(const Acl& acl, AclEntry::Tag tag, std::uint16_t otherwise) {
  for (const AclEntry& entry : acl)
    if (entry.tag == tag) return entry.permissions;
  return otherwise;
}

// The entry that stands for the group bits of a mode.
AclEntry& group_class(Acl& acl) {
  AclEntry* entry = find(acl, AclEntry::kMask);
  if (entry == nullptr) entry = find(acl, AclEntry::kGroupObject);
  MDFS_CHECK(entry != nullptr);
  return *entry;
}

bool acl_allows(const Acl& acl, uid_t owner, gid_t group, const Caller& caller, unsigned want) {
  const unsigned mask = permissions_of(acl, AclEntry::kMask, 7);
  bool in_a_group = false;
  for (const AclEntry& entry : acl) {
    if (entry.tag == AclEntry::kUserObject && caller.uid == owner) return (entry.permissions & want) == want;
    if (entry.tag == AclEntry::kUser && caller.uid == entry.id) return (entry.permissions & mask & want) == want;
    const bool mine = (entry.tag == AclEntry::kGroupObject && caller.is_in(group)) ||
                      (entry.tag == AclEntry::kGroup && caller.is_in(entry.id));
    if (mine && (entry.permissions & mask & want) == want) return true;
    in_a_group = in_a_group || mine;
  }
  return !in_a_group && (permissions_of(acl, AclEntry::kOther, 0) & want) == want;
}

}  // namespace

Result<Acl> parse_acl(ConstBytes value) {
  if (value.empty()) return Acl{};
  if (value.size() < kHeaderBytes || (value.size() - kHeaderBytes) % kEntryBytes != 0)
    return Error{Errc::kInvalidArgument,
                 fmt::format("access control list: {} bytes; {} are needed, and {} for each entry", value.size(),
                             kHeaderBytes, kEntryBytes)};
  const auto version = load_le<std::uint32_t>(value, 0);
  if (version != POSIX_ACL_XATTR_VERSION)
    return Error{Errc::kNotSupported, fmt::format("access control list: version {}; version {} is supported", version,
                                                  POSIX_ACL_XATTR_VERSION)};
  Acl acl;
  for (std::size_t at = kHeaderBytes; at < value.size(); at += kEntryBytes) {
    AclEntry entry{load_le<std::uint16_t>(value, at), load_le<std::uint16_t>(value, at + 2),
                   load_le<std::uint32_t>(value, at + 4)};
    const bool one_known_tag = (entry.tag & (entry.tag - 1)) == 0 && entry.tag != 0 && entry.tag <= AclEntry::kOther;
    if (!one_known_tag)
      return Error{Errc::kInvalidArgument, fmt::format("access control list: unknown tag {}", entry.tag)};
    if (!has_id(entry.tag)) entry.id = AclEntry::kNoId;
    acl.push_back(entry);
  }
  if (!acl.empty()) MDFS_TRY(check(acl));
  return acl;
}

ByteVector encode_acl(const Acl& acl) {
  ByteVector value(kHeaderBytes + acl.size() * kEntryBytes);
  store_le<std::uint32_t>(value, 0, POSIX_ACL_XATTR_VERSION);
  std::size_t at = kHeaderBytes;
  for (const AclEntry& entry : acl) {
    store_le<std::uint16_t>(value, at, entry.tag);
    store_le<std::uint16_t>(value, at + 2, entry.permissions);
    store_le<std::uint32_t>(value, at + 4, entry.id);
    at += kEntryBytes;
  }
  return value;
}

bool is_minimal(const Acl& acl) { return acl.size() <= 3; }

mode_t mode_bits(const Acl& acl) {
  const mode_t group = permissions_of(acl, AclEntry::kMask, permissions_of(acl, AclEntry::kGroupObject, 0));
  return (mode_t{permissions_of(acl, AclEntry::kUserObject, 0)} << 6) | (group << 3) |
         permissions_of(acl, AclEntry::kOther, 0);
}

void change_mode(Acl& acl, mode_t mode) {
  find(acl, AclEntry::kUserObject)->permissions = (mode >> 6) & 7;
  group_class(acl).permissions = (mode >> 3) & 7;
  find(acl, AclEntry::kOther)->permissions = mode & 7;
}

mode_t inherit(Acl& acl, mode_t mode) {
  AclEntry& owner = *find(acl, AclEntry::kUserObject);
  AclEntry& group = group_class(acl);
  AclEntry& other = *find(acl, AclEntry::kOther);
  owner.permissions = static_cast<std::uint16_t>(owner.permissions & (mode >> 6));
  group.permissions = static_cast<std::uint16_t>(group.permissions & (mode >> 3));
  other.permissions = static_cast<std::uint16_t>(other.permissions & mode);
  return (mode & ~mode_t{0777}) | (mode_t{owner.permissions} << 6) | (mode_t{group.permissions} << 3) |
         other.permissions;
}

bool may_access(const Acl& acl, mode_t mode, uid_t owner, gid_t group, const Caller& caller, int mask) {
  const unsigned want = static_cast<unsigned>(mask) & 7;
  if (caller.uid == 0) return (want & 1) == 0 || S_ISDIR(mode) || (mode & 0111) != 0;
  if (!acl.empty()) return acl_allows(acl, owner, group, caller, want);
  if (caller.uid == owner) return ((mode >> 6) & want) == want;
  if (caller.is_in(group)) return ((mode >> 3) & want) == want;
  return (mode & want) == want;
}

}  // namespace mdfs::volume
