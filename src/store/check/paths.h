// The paths of the objects of findings.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "store/check/findings.h"
#include "store/check/objects.h"
#include "store/check/tree_scan.h"

namespace mdfs::store {

// Fills in Finding::path where names lead from the root directory to the object, in the volume before repairs. The
// checker does not keep names, so this reads the leaves with the wanted names once more. One thread.
void find_paths(const ObjectTable& table, const TreeScan& tree, const NodeLoader& loader,
                std::vector<Finding>& findings);

}  // namespace mdfs::store
