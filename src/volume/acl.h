// POSIX access control lists (POSIX.1e draft 17) in the form of Linux: the extended attributes system.posix_acl_access
// and system.posix_acl_default. Pure.
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

// In the order that Linux requires: owner, users, owning group, groups, mask, others. Empty: no list.
using Acl = std::vector<AclEntry>;

// Reads and checks the value of an attribute. kInvalidArgument; kNotSupported for another version.
Result<Acl> parse_acl(ConstBytes value);
ByteVector encode_acl(const Acl& acl);

// A list of three entries equals the mode; it is minimal and not stored.
bool is_minimal(const Acl& acl);
// The nine permission bits for a list. The bits of the group are the mask, if the list has one.
mode_t mode_bits(const Acl& acl);
// Changes a list as chmod does.
void change_mode(Acl& acl, mode_t mode);
// Turns a directory's default list into the access list of a new child. Restricts list and mode by each other, and
// returns the child's mode.
mode_t inherit(Acl& acl, mode_t mode);

// True if the caller may do all of `mask` (R_OK | W_OK | X_OK) with an inode of this owner, group and mode. `acl` is
// its access list, or empty. The superuser may do all, but may execute a file only if some user may.
bool may_access(const Acl& acl, mode_t mode, uid_t owner, gid_t group, const Caller& caller, int mask);

}  // namespace mdfs::volume
