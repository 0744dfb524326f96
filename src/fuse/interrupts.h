// Detects requests whose caller is being killed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "base/stop.h"
#include "engine/engine.h"
#include "fuse/fair_queue.h"
#include "fuse/low_level.h"

namespace mdfs::fuse {

// True if /proc/PID/status shows a pending signal that ends the thread. The kernel replaces by SIGKILL all signals
// that end a process.
bool is_ending(std::string_view status);

// True once the request's caller is being killed or is gone: it waits in the kernel until the request is answered. A
// signal that it handles leaves the request alone, as on other filesystems. Valid until the request is answered.
engine::Stop stop_of(fuse_req_t req);

// Work that answers the request. A caller who ends before it has begun gets EINTR.
FairQueue::Job job_of(fuse_req_t req, std::function<void()> work);

// Makes a call that changes nothing, and does not answer the request: its waits for disks end as stop_of() says.
template <typename Call>
auto reading(fuse_req_t req, Call&& call) {
  const StopScope scope(stop_of(req));
  return std::forward<Call>(call)();
}

}  // namespace mdfs::fuse
