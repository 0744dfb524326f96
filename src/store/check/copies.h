// Copies of extents, compared with the records that they belong to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "format/extent_copies.h"
#include "store/check/objects.h"
#include "store/check/tree_scan.h"

namespace mdfs::store {

// Items of a tree that has been scanned, by their keys. Reads leaf by leaf; ascending keys of two ranges in turn cost
// each leaf once. The tree outlives it. One thread.
class ItemLookup {
 public:
  ItemLookup(const TreeScan& tree, const NodeLoader& loader) : tree_(tree), loader_(loader) {}

  // Absent also if its leaf is lost.
  Result<std::optional<ByteVector>> get(const format::Key& key);

 private:
  static constexpr std::size_t kKept = 4;  // leaves
  struct Leaf {
    const NodeRef* ref = nullptr;
    std::optional<format::Node> node;
  };
  const TreeScan& tree_;
  const NodeLoader& loader_;
  std::vector<Leaf> leaves_;  // the last ones used first
};

// Reports copies without their extents, and copies on a disk of the first piece. Passes the others to `on_data`, unless
// that is empty, with both pieces: `runs` are those of the copy.
void check_copies(const std::vector<CopyPageRef>& pages, ItemLookup& items, std::uint32_t block_size,
                  Findings& findings, Edits& edits, const DataVisitor& on_data);

// Both pieces of an extent of which one was checked: `runs` as they are in `data`. Nothing: it has no other piece.
std::optional<format::StoredExtent> both_pieces(ItemLookup& items, const format::ExtentTableShape& shape,
                                                std::uint32_t block_size, const StoredData& data);

}  // namespace mdfs::store
