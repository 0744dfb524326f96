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
// Its uid and gid where that user does not exist: Debian and systemd do not assign this number.
inline constexpr uid_t kDaemonId = 65533;

struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
};

// The user of the daemon: for root the user mdfs, for others the caller. Root of a user namespace in which that
// user has no number keeps its user and only loses its capabilities, with a warning.
Result<Identity> daemon_identity();

// Access of a process to its working directory: as its user, or as the owner of that directory where its user
// may not search it.
enum class Search : std::uint8_t { kAsUser, kWorkingDirectory };

// Changes the calling process to that user, with these capabilities only, and none gained by execve(2). For a
// caller other than root: only the latter. Call it before creating threads.
Status become(const Identity& identity, std::initializer_list<cap_value_t> kept, Search search = Search::kAsUser);

}  // namespace mdfs::fuse
