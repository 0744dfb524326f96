// Waiting until the writer of a volume has gone, to take its place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace mdfs::fuse {

// Calls `attempt` until it succeeds, with a pause after each failure that may pass: disks in use (kBusy); later also
// disks that cannot be reached or found for a while. Any other error is returned. `notice` gets each new reason once.
Status stand_by(const std::function<Status()>& attempt, const std::function<void(const std::string& line)>& notice,
                const std::function<void()>& pause);

}  // namespace mdfs::fuse
