// Which system calls the processes of a mount may make from now on (seccomp, an allow list).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace mdfs::fuse {

// Of the daemon, all threads. Any other call ends in ENOSYS, and the process is sent kRefusedSignal to say so. Call it
// once, where no file is to be made or opened for writing any more, no program started, and no other kind of socket
// opened; `no_new_privs` is set.
Status filter_daemon_calls();

// Of the process that unmounts. Any other call kills it.
Status filter_helper_calls();

// Blocked in all threads but the one that waits for it.
extern const int kRefusedSignal;

// The names of the calls that were refused so far, each once.
std::vector<std::string> refused_calls();

}  // namespace mdfs::fuse
