// Runs of blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "format/run.h"

namespace mdfs::alloc {

using format::Run;

// Sorted, with adjacent runs of a disk joined up to the largest length of a run. The runs must not overlap.
std::vector<Run> merged(std::vector<Run> runs);

}  // namespace mdfs::alloc
