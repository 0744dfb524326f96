// A bar for commands that wait until the disks hold what was written.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace mdfs::tools {

// Runs `wait`, which returns when the disks hold what it is about; meanwhile a bar on a terminal shows how what the
// volume of `path` has still to write becomes less. `wanted` false shows nothing.
Status wait_with_bar(const std::string& path, bool wanted, const std::function<Status()>& wait);

// Returns when the disks hold what was written so far to the volume, with that bar.
Status sync_with_bar(const std::string& path);

}  // namespace mdfs::tools
