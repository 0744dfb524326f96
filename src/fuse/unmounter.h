// A small process that keeps the right to unmount, so that the daemon need not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/result.h"

namespace mdfs::fuse {

// Used by one thread at a time. The process ends with this object, or with the daemon; it does nothing unasked, so that
// the mount point of a daemon that died keeps programs out of the directory underneath.
class Unmounter {
 public:
  // Call it before making threads, and with signals blocked as the process shall have them.
  static Result<std::unique_ptr<Unmounter>> start(const std::string& mountpoint);
  ~Unmounter();
  Unmounter(const Unmounter&) = delete;
  Unmounter& operator=(const Unmounter&) = delete;

  // Takes the mount out of the tree of names at once; open files stay open.
  Status unmount_lazily();

 private:
  Unmounter(int socket, pid_t child) : socket_(socket), child_(child) {}
  const int socket_;
  const pid_t child_;
};

}  // namespace mdfs::fuse
