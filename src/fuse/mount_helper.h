// A small process that mounts and unmounts, so that the daemon does not need the right.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "device/unique_fd.h"
#include "fuse/privileges.h"
#include "fuse/session.h"

namespace mdfs::fuse {

// One thread at a time. The process ends with this object, or with the daemon. It only acts on request, so that
// the mount point of a dead daemon keeps programs out of the directory underneath.
// Until it has mounted it is the mounting user, with all rights, and reads no more than one byte. Then root's process
// has only the capability to unmount, runs as another user, and is behind a filter of system calls. The process of
// another user keeps its rights: fusermount3 has the privileges.
class MountHelper {
 public:
  // Call it before creating threads, with signals blocked as the process shall have them.
  static Result<std::unique_ptr<MountHelper>> start(const std::string& mountpoint, const SessionOptions& options,
                                                    const Identity& identity);
  ~MountHelper();
  MountHelper(const MountHelper&) = delete;
  MountHelper& operator=(const MountHelper&) = delete;

  // Call once. The options may also ask for a read-only mount.
  Result<device::UniqueFd> mount(bool read_only);
  // Removes the mount from the tree of names at once; open files stay open.
  Status unmount_lazily();

 private:
  MountHelper(int socket, pid_t child) : socket_(socket), child_(child) {}
  const device::UniqueFd socket_;
  const pid_t child_;
};

}  // namespace mdfs::fuse
