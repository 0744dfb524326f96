// Paths of what findings are about.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "store/check/findings.h"
#include "store/check/objects.h"
#include "store/check/tree_scan.h"

namespace mdfs::store {

// Fills in Finding::path where names of the volume as it was found lead from the root directory to the object. Names
// themselves are not kept by a check: the leaves that hold those that are wanted are read once more. One thread.
void find_paths(const ObjectTable& table, const TreeScan& tree, const NodeLoader& loader,
                std::vector<Finding>& findings);

}  // namespace mdfs::store
