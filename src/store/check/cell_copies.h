// Copies of cells of files, compared with the cells that they belong to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "store/check/copies.h"

namespace mdfs::store {

// Reports copies without their blocks, and copies on the disk of the block. Passes the others to the visitor with both
// pieces: `runs` are those of the copy.
void check_cell_copies(const std::vector<std::uint64_t>& files, const CopyChecks& checks);

// The blocks of a run of a cell, or of its copies, one by one. A block whose other piece lies on another disk has that
// as its copy. None: the tree does not have the run like this.
std::vector<format::StoredExtent> blocks_with_pieces(ItemLookup& items, std::uint32_t block_size,
                                                     const StoredData& data);

}  // namespace mdfs::store
