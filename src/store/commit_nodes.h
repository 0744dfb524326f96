// Reads the tree nodes that one commit wrote, copy by copy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "alloc/run.h"
#include "base/result.h"
#include "device/disk.h"
#include "format/commit.h"
#include "format/node.h"

namespace mdfs::store {

// A copy that fails verification, and the number of a good one.
struct BadNodeCopy {
  format::Pointer pointer;
  std::size_t bad = 0;
  std::size_t good = 0;
};

struct CommitNodes {
  std::vector<alloc::Run> runs;  // of all copies of all nodes that the commit wrote
  std::vector<BadNodeCopy> bad;
  std::vector<format::LeafItem> items;  // of the leaves, in no order
};

// Reads every copy of every node whose birth is the commit's generation. disks[i] is disk i, null if absent; copies on
// absent disks count neither as good nor as bad. For commits with checksum records, whose covered blocks bound the
// reads. Errors: kCorrupt (a node without a good copy; more nodes than the records cover).
Result<CommitNodes> read_commit_nodes(const format::CommitSlot& slot, std::span<device::Disk* const> disks,
                                      std::uint32_t block_size);

// The value of an item in the tree of the commit; absent: there is none. Reads one good copy of each node on the way,
// whichever commit wrote it. Errors: kCorrupt (a node without a good copy).
Result<std::optional<ByteVector>> read_item(const format::CommitSlot& slot, std::span<device::Disk* const> disks,
                                            std::uint32_t block_size, const format::Key& key);

// Overwrites the bad copies with the good ones. The caller flushes.
Status repair_copies(std::span<const BadNodeCopy> copies, std::span<device::Disk* const> disks,
                     std::uint32_t block_size);

}  // namespace mdfs::store
