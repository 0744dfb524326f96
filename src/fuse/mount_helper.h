// A small process that mounts and unmounts, so that the daemon needs no right to.
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

// Used by one thread at a time. The process ends with this object, or with the daemon; it does nothing unasked, so that
// the mount point of a daemon that died keeps programs out of the directory underneath.
// Until it has mounted it is the user who mounts, with all rights, but is told no more than one byte. Then root's has
// the one capability that unmounting needs, is another user, and is behind a filter of system calls. That of another
// user goes on as it is: fusermount3 has the rights.
class MountHelper {
 public:
  // Call it before making threads, and with signals blocked as the process shall have them.
  static Result<std::unique_ptr<MountHelper>> start(const std::string& mountpoint, const SessionOptions& options,
                                                    const Identity& identity);
  ~MountHelper();
  MountHelper(const MountHelper&) = delete;
  MountHelper& operator=(const MountHelper&) = delete;

  // Once. Read-only also if the options say so.
  Result<device::UniqueFd> mount(bool read_only);
  // Takes the mount out of the tree of names at once; open files stay open.
  Status unmount_lazily();

 private:
  MountHelper(int socket, pid_t child) : socket_(socket), child_(child) {}
  const device::UniqueFd socket_;
  const pid_t child_;
};

}  // namespace mdfs::fuse
