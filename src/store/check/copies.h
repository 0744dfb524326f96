// Copies of extents, compared with the records that they belong to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "format/extent_copies.h"
#include "store/check/item_lookup.h"
#include "store/check/objects.h"

namespace mdfs::store {

// What copies are compared with. The referenced objects outlive it.
struct CopyChecks {
  ItemLookup& items;
  const BlockMap& blocks;  // for the sizes of the disks
  std::uint32_t block_size;
  Findings& findings;
  Edits& edits;
  const DataVisitor& on_data;  // may be empty
};

// Reports copies and parities without their extents, and pieces of an extent or group on one disk. Passes the other
// copies to `on_data` with both pieces, `runs` being those of the copy, and parities with the other pieces of the
// group.
void check_copies(const std::vector<CopyPageRef>& pages, const CopyChecks& checks);

// All pieces of an extent of which one was checked: `runs` as they are in `data`. Nothing: it has no other piece.
std::optional<format::StoredExtent> both_pieces(ItemLookup& items, const format::ExtentTableShape& shape,
                                                std::uint32_t block_size, const StoredData& data);

}  // namespace mdfs::store
