// Looks up items of a tree that has been scanned.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "format/node.h"
#include "store/check/tree_scan.h"

namespace mdfs::store {

// Items of a tree that has been scanned, by their keys. Reads leaf by leaf; ascending keys of two ranges in turn cost
// each leaf once. The tree outlives it. One thread.
class ItemLookup {
 public:
  ItemLookup(const TreeScan& tree, const NodeLoader& loader) : tree_(tree), loader_(loader) {}

  // Absent also if its leaf is lost.
  Result<std::optional<ByteVector>> get(const format::Key& key);
  // The first item from `from` to `last`. Lost leaves have none.
  std::optional<format::LeafItem> next(format::Key from, const format::Key& last);

 private:
  static constexpr std::size_t kKept = 4;  // leaves
  struct Leaf {
    const NodeRef* ref = nullptr;
    std::optional<format::Node> node;  // absent: lost
  };
  // The leaf that stands for a key; valid until the next call.
  const Leaf& leaf_of(const format::Key& key);
  // The first item of a leaf from a key on; null: there is none.
  static const format::LeafItem* first_item(const Leaf& leaf, const format::Key& from);

  const TreeScan& tree_;
  const NodeLoader& loader_;
  std::vector<Leaf> leaves_;  // the last ones used first
};

}  // namespace mdfs::store
