// Writes a new tree from a damaged one. Keeps good leaves that do not change, and builds the rest.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "format/commit.h"
#include "format/node.h"
#include "store/check/block_map.h"
#include "store/check/edits.h"
#include "store/check/tree_scan.h"
#include "store/recovery.h"

namespace mdfs::store {

// Writes only to blocks that are free in `taken`, and marks them there. The last commit stays intact, and the new tree
// counts only after a commit. One thread.
class TreeRewriter {
 public:
  // `taken`: blocks that must not be written. New nodes are born in `generation`.
  TreeRewriter(const Recovered& volume, const NodeLoader& loader, BlockMap& taken, std::uint64_t generation)
      : volume_(volume), loader_(loader), taken_(taken), generation_(generation) {}

  // The leaves of `scan` with the edits. Errors: kNoSpace, kIo, kCorrupt (a leaf that was good no longer is).
  Result<format::Root> rewrite(const TreeScan& scan, const Edits& edits);

 private:
  struct Child {
    format::Key key;
    format::Pointer pointer;
  };

  Status add_items(std::vector<format::LeafItem> items);
  Status end_leaf();
  Result<format::Root> build(std::vector<Child> children);
  Result<format::Pointer> write_node(format::Node node);
  Status flush_writes();
  Result<format::Address> place_node(std::size_t copy, const std::vector<format::Address>& others);
  Result<std::vector<format::LeafItem>> edited(const NodeRef& leaf, const Edits& edits);
  // The new value, or nothing if the item is removed.
  Result<std::optional<ByteVector>> apply(const format::Key& key, const ByteVector& value, const ItemEdit& edit);
  Result<std::optional<ByteVector>> fix_extents(const ByteVector& value, const FixRecords& fix);
  Result<std::optional<ByteVector>> fix_copies(const ByteVector& value, const FixRecords& fix);
  Result<std::optional<ByteVector>> fix_strip(const ByteVector& value, const FixRecords& fix);
  Result<std::optional<ByteVector>> fix_cell(const ByteVector& value, const FixRecords& fix);
  Result<std::optional<ByteVector>> fix_cell_copies(const ByteVector& value, const FixRecords& fix);
  // Copies blocks unchanged, bad or good, to one free run.
  Result<format::Address> copy_blocks(const format::Runs& runs);

  const Recovered& volume_;
  const NodeLoader& loader_;
  BlockMap& taken_;
  const std::uint64_t generation_;
  std::vector<Child> leaves_;
  format::Node open_leaf_;
  std::size_t open_bytes_ = 0;
  std::uint64_t nodes_ = 0;
  std::size_t next_disk_ = 0;
  struct Write {
    format::Pointer pointer;
    AlignedBuffer bytes;
  };
  std::vector<Write> writes_;
};

}  // namespace mdfs::store
