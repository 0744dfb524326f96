// Data of one commit that are damaged on one disk, and whole on another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "alloc/run.h"
#include "base/result.h"
#include "device/disk.h"
#include "format/commit.h"
#include "format/node.h"
#include "format/stored_extent.h"
#include "store/commit_nodes.h"

namespace mdfs::store {

// A piece of data that does not match its checksums.
struct BadPiece {
  format::StoredExtent good;  // by the other piece, which matches; or itself, if the other pieces of its group give it
  format::Runs bad;           // as many blocks as `good` has in `runs`
};

struct PiecesElsewhere {
  std::vector<alloc::Run> runs;
  std::vector<BadPiece> bad;
};

// Of data in the tree of the commit: the runs of pieces that have blocks in one of the `bad` runs, and whose other
// piece matches; and those of extents of levels, which can be made again. `items`: of the leaves that the commit wrote,
// in no order; the commit published nothing that other leaves describe. disks[i] is disk i, null if absent; a piece
// there is not good. Reads both pieces of what is bad, and the way to the inode and geometry of each image that has
// some.
PiecesElsewhere pieces_good_elsewhere(const format::CommitSlot& slot, std::vector<format::LeafItem> items,
                                      std::span<const alloc::Run> bad, std::span<device::Disk* const> disks,
                                      std::uint32_t block_size);

// What is damaged of a commit that counts all the same.
struct CommitDamage {
  std::vector<BadNodeCopy> nodes;
  std::vector<BadPiece> pieces;
  bool empty() const { return nodes.empty() && pieces.empty(); }
};

// Overwrites what is bad with what is good, on the disks that are there. The caller flushes. The commit's own blocks
// are written in place: no other commit reaches what it has written.
Status repair(const CommitDamage& damage, std::span<device::Disk* const> disks, std::uint32_t block_size);

}  // namespace mdfs::store
