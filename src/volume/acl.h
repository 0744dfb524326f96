// POSIX access control lists (POSIX.1e draft 17) in the form in which Linux passes them: extended attributes
// system.posix_acl_access and system.posix_acl_default. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "volume/volume.h"

namespace mdfs::volume {

inline constexpr std::string_view kAccessAclName = "system.posix_acl_access";
inline constexpr std::string_view kDefaultAclName = "system.posix_acl_default";

struct AclEntry {
  enum Tag : std::uint16_t {
    kUserObject = 0x01,
    kUser = 0x02,
    kGroupObject = 0x04,
    kGroup = 0x08,
    kMask = 0x10,
    kOther = 0x20
  };
  static constexpr std::uint32_t kNoId = UINT32_MAX;
  std::uint16_t tag = 0;
  std::uint16_t permissions = 0;  // rwx in the low three bits
  std::uint32_t id = kNoId;       // of kUser and kGroup

  bool operator==(const AclEntry&) const = default;
};

// In the order that Linux demands: owner, users, owning group, groups, mask, others. Empty: no list.
using Acl = std::vector<AclEntry>;

// Reads and checks the value of an attribute (kInvalidArgument; kNotSupported for another version).
Result<Acl> parse_acl(ConstBytes value);
ByteVector encode_acl(const Acl& acl);

// A list of the three entries that a mode has as well is minimal and not stored.
bool is_minimal(const Acl& acl);
// The nine permission bits of the mode that belongs to a list: the group's are the mask, where there is one.
mode_t mode_bits(const Acl& acl);
// What chmod does to a list.
void change_mode(Acl& acl, mode_t mode);
// Makes of a directory's default list the access list of a new child: narrows both by each other and returns the
// child's mode.
mode_t inherit(Acl& acl, mode_t mode);

// May the caller do all of `mask` (R_OK | W_OK | X_OK) with an inode of this owner, group and mode? `acl` is its
// access list, empty if none. The superuser may, but execute only what anybody may execute (or a directory).
bool may_access(const Acl& acl, mode_t mode, uid_t owner, gid_t group, const Caller& caller, int mask);

}  // namespace mdfs::volume
