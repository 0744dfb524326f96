// Users and capabilities.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/privileges.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "base/log.h"

namespace mdfs::fuse {
namespace {

// /proc/self/uid_map and gid_map: lines of first number inside, first one outside, count.
bool has_number(const char* map, std::uint64_t number) {
  std::ifstream lines(map);
  for (std::uint64_t inside = 0, outside = 0, count = 0; lines >> inside >> outside >> count;)
    if (number >= inside && number - inside < count) return true;
  return false;
}

Result<Identity> user_of_the_name() {
  std::vector<char> room(16384);
  passwd entry{};
  passwd* found = nullptr;
  const int problem = getpwnam_r(kDaemonUser, &entry, room.data(), room.size(), &found);
  if (found != nullptr) return Identity{found->pw_uid, found->pw_gid};
  if (problem != 0 && problem != ENOENT) return from_errno(problem, fmt::format("looking for user {}", kDaemonUser));
  spdlog::info("there is no user {}: the daemon runs as uid {}", kDaemonUser, kDaemonId);
  return Identity{kDaemonId, kDaemonId};
}

Status set_capabilities(const std::vector<cap_value_t>& kept) {
  const cap_t set = cap_init();
  if (set == nullptr) return from_errno(errno, "dropping capabilities");
  int status = 0;
  for (const cap_value_t one : kept)
    for (const cap_flag_t flag : {CAP_PERMITTED, CAP_EFFECTIVE})
      if (status == 0) status = cap_set_flag(set, flag, 1, &one, CAP_SET);
  if (status == 0) status = cap_set_proc(set);
  const int number = errno;
  cap_free(set);
  if (status != 0) return from_errno(number, "dropping capabilities");
  return {};
}

// What execve(2) could give back. Without CAP_SETPCAP the set stays, and "no new privileges" alone closes that way.
Status bound_capabilities(const std::vector<cap_value_t>& kept) {
  for (cap_value_t one = 0; one < cap_max_bits(); ++one) {
    if (std::find(kept.begin(), kept.end(), one) != kept.end()) continue;
    if (prctl(PR_CAPBSET_DROP, one, 0, 0, 0) != 0 && errno != EPERM) return from_errno(errno, "dropping capabilities");
  }
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return from_errno(errno, "dropping capabilities");
  return {};
}

// The capabilities stay permitted; none is in effect.
Status become_user(const Identity& identity) {
  if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && setgroups(0, nullptr) == 0 &&
      setresgid(identity.gid, identity.gid, identity.gid) == 0 &&
      setresuid(identity.uid, identity.uid, identity.uid) == 0 && prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) == 0)
    return {};
  return from_errno(errno, fmt::format("becoming uid {}", identity.uid));
}

Status search_as(uid_t owner, std::vector<cap_value_t> kept) {
  if (faccessat(AT_FDCWD, ".", X_OK, AT_EACCESS) == 0) return {};
  kept.push_back(CAP_SETUID);
  MDFS_TRY(set_capabilities(kept));
  setfsuid(owner);
  return {};
}

}  // namespace

Result<Identity> daemon_identity() {
  if (geteuid() != 0) return Identity{geteuid(), getegid()};
  MDFS_TRY_ASSIGN(const Identity identity, user_of_the_name());
  if (identity.uid == 0 || identity.gid == 0)
    return Error{Errc::kInvalidArgument, fmt::format("user {} has uid {} and gid {}: both must differ from 0",
                                                     kDaemonUser, identity.uid, identity.gid)};
  if (has_number("/proc/self/uid_map", identity.uid) && has_number("/proc/self/gid_map", identity.gid)) return identity;
  spdlog::warn("uid {} has no number in this user namespace: the daemon keeps the mounting user", identity.uid);
  return Identity{geteuid(), getegid()};
}

Status become(const Identity& identity, std::initializer_list<cap_value_t> kept, Search search) {
  if (geteuid() == 0) {
    MDFS_TRY(bound_capabilities(kept));
    if (identity.uid != 0) {
      struct stat here {};
      if (search == Search::kWorkingDirectory && stat(".", &here) != 0) return from_errno(errno, "working directory");
      MDFS_TRY(become_user(identity));
      if (search == Search::kWorkingDirectory) MDFS_TRY(search_as(here.st_uid, kept));
    }
    MDFS_TRY(set_capabilities(kept));
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // the sanitizer looks into its own process
#endif
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return from_errno(errno, "giving up new privileges");
  return {};
}

}  // namespace mdfs::fuse
