// The user and the capabilities of the processes that serve a mount.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/capability.h>
#include <sys/types.h>

#include <cstdint>
#include <initializer_list>

#include "base/result.h"

namespace mdfs::fuse {

// The system user whose processes serve the mounts of root.
inline constexpr const char* kDaemonUser = "mdfs";
// Its uid and gid where there is no such user: Debian and systemd both give the number to nobody.
inline constexpr uid_t kDaemonId = 65533;

struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
};

// Who the daemon is to be: of root the user mdfs, of everybody else the caller. Root of a user namespace in which that
// user has no number stays who it is, and loses its capabilities alone; a warning says so.
Result<Identity> daemon_identity();

// How a process reaches names in its working directory: as its user, or as the owner of that directory where its user
// may not search it.
enum class Search : std::uint8_t { kAsUser, kWorkingDirectory };

// Makes the calling process that user, with these capabilities and no others, and no more to come by execve(2). For a
// caller who is not root: only the latter. Call it before making threads.
Status become(const Identity& identity, std::initializer_list<cap_value_t> kept, Search search = Search::kAsUser);

}  // namespace mdfs::fuse
