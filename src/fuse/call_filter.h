// Filters the system calls of the processes of a mount (seccomp, an allow list).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace mdfs::fuse {

// Filters all threads of the daemon. Any other call returns ENOSYS, and the process gets kRefusedSignal. Call it
// once, when the daemon will not create files, open files for writing, start programs or open other kinds of
// sockets any more; `no_new_privs` must be set.
// kClient: the daemon also connects to servers.
enum class Network : std::uint8_t { kNone, kClient };
Status filter_daemon_calls(Network network = Network::kNone);

// Filters the process that unmounts. Any other call kills it.
Status filter_helper_calls();

// The signal of a refused call; blocked in all threads but the one that waits for it.
extern const int kRefusedSignal;

// Names of the calls refused so far, each once.
std::vector<std::string> refused_calls();

}  // namespace mdfs::fuse
