// Planning the rebuild of an image with parities.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/rebuild_plan.h"
#include "sim/system.h"

namespace mdfs::sim {

// Of an image with parities and a lost disk, in the order of the mount (engine/relocate/group_planner.h): the members
// of a group that stays are made from the others, and what cannot stay is grouped anew. Leaves out the imbalance.
RebuildPlan plan_parity_rebuild(const System& degraded);

}  // namespace mdfs::sim
