// Runs that are one.
// SPDX-License-Identifier: Apache-2.0
#include "alloc/run.h"

#include <algorithm>
#include <limits>

namespace mdfs::alloc {

std::vector<Run> merged(std::vector<Run> runs) {
  std::sort(runs.begin(), runs.end());
  std::vector<Run> whole;
  for (const Run& run : runs) {
    if (!whole.empty() && whole.back().disk == run.disk && whole.back().end() == run.block &&
        run.blocks <= std::numeric_limits<std::uint32_t>::max() - whole.back().blocks)
      whole.back().blocks += run.blocks;
    else
      whole.push_back(run);
  }
  return whole;
}

}  // namespace mdfs::alloc
