// A progress bar for commands that wait until data are on the disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace mdfs::tools {

// Runs `wait`, which returns when its data are on the disks. On a terminal, a bar shows the remaining dirty bytes of
// the volume of `path` until then. `wanted` false shows nothing.
Status wait_with_bar(const std::string& path, bool wanted, const std::function<Status()>& wait);

// Returns when everything written to the volume so far is on the disks, with that bar.
Status sync_with_bar(const std::string& path);

}  // namespace mdfs::tools
