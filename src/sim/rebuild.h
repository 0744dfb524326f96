// The rebuild of a lost disk on the others: what it reads and writes, how long it takes, and what windows cost
// meanwhile. Deterministic in the seed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "geometry/geometry.h"
#include "sim/rebuild_plan.h"
#include "sim/simulation.h"
#include "sim/statistics.h"
#include "sim/system.h"

namespace mdfs::sim {

// `degraded` has two copies or parities, and a lost disk. kInvalidArgument: it has not, or two disks at most, so that
// no other disk can take a second copy.
Result<RebuildPlan> plan_rebuild(const System& degraded);

struct RebuildLoad {
  geometry::Coord length{};             // of a window
  unsigned windows = 500;               // the fewest that are counted
  std::optional<double> windows_per_s;  // at random times; absent: one at a time
  double think_s = 0;                   // then: from the arrival of a window to the next request
};
struct RebuildResult {
  double rebuild_s = 0;          // the mean of the passes
  std::uint64_t passes = 0;      // the rebuild is repeated until enough windows have come
  std::vector<double> delays_s;  // of windows that were requested meanwhile
  std::vector<ResourceUse> use;  // until the end of the last pass
};
// The rebuild beside windows at random positions, which give it way as on a mount: before each piece it waits until no
// window is under way, but at most kMostYieldNs. Windows are read as if no piece had been rebuilt yet. No load: the
// rebuild alone.
RebuildResult run_rebuild(const System& degraded, const RebuildPlan& plan, const std::optional<RebuildLoad>& load,
                          std::uint64_t seed);

}  // namespace mdfs::sim
