// Requests whose caller does not live to see the answer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "engine/engine.h"
#include "fuse/low_level.h"

namespace mdfs::fuse {

// From /proc/PID/status: a signal that ends the thread is pending. The kernel puts SIGKILL in the place of all others
// that end a process.
bool is_ending(std::string_view status);

// True once the request's caller is being ended, or is gone: it waits in the kernel until the request is answered. A
// signal that it handles leaves the request alone, as on other filesystems. Valid until the request is answered.
engine::Stop stop_of(fuse_req_t req);

}  // namespace mdfs::fuse
