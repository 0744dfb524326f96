// Reads the whole tree, every copy of every node, level by level.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "format/commit.h"
#include "format/node.h"
#include "store/check/block_map.h"
#include "store/check/findings.h"
#include "store/recovery.h"

namespace mdfs::store {

// A node and the keys for which it stands: [lower, upper].
struct NodeRef {
  format::Pointer pointer;
  format::Key lower = format::kMinKey;
  format::Key upper = format::kMaxKey;
  std::uint16_t level = 0;
  bool lost = false;   // no good copy (a lost subtree is one lost leaf)
  bool moved = false;  // lies where no node may lie: to be written to another place
};

// A bad copy of a node, to be rewritten from a good one.
struct CopyToRepair {
  format::Pointer pointer;
  std::size_t copy = 0;
};

// The result of reading a node from the disks.
struct LoadedNode {
  std::optional<format::Node> node;     // from the first good copy
  std::vector<std::size_t> bad_copies;  // on present disks
  std::string why;                      // of the last bad copy
};

// Reads nodes from the healthy disks of a recovered volume. One thread.
class NodeLoader {
 public:
  static constexpr std::size_t kBatch = 64;

  NodeLoader(const Recovered& volume, const std::vector<format::DiskLayout>& layouts)
      : volume_(volume), layouts_(layouts) {}

  // At most kBatch nodes, all copies of all of them at once.
  std::vector<LoadedNode> load(std::span<const NodeRef> refs) const;
  // The bytes of one good copy.
  Result<AlignedBuffer> read_good(const format::Pointer& pointer) const;

 private:
  const Recovered& volume_;
  const std::vector<format::DiskLayout>& layouts_;
};

// Scans the tree under `root`. Marks the blocks of every node in `blocks`, adds to `findings`, and passes every good
// leaf to `leaf` in order of keys.
struct TreeScan {
  std::vector<NodeRef> leaves;     // in order of keys; they tile all keys
  std::vector<NodeRef> interiors;  // level by level
  std::vector<CopyToRepair> to_repair;
  std::uint64_t nodes = 0;    // good ones
  bool must_rewrite = false;  // a node is lost, or lies where no node may lie
};
using LeafVisitor = std::function<void(const format::Node& leaf)>;
// Called between batches with the memory of the scan in bytes; an error ends the scan.
using MemoryLimit = std::function<Status(std::uint64_t bytes)>;
Result<TreeScan> scan_tree(const NodeLoader& loader, const format::Root& root, BlockMap& blocks, Findings& findings,
                           const LeafVisitor& leaf, const MemoryLimit& limit = {});
// The same for a further section of `blocks`: marks the nodes again, adds only the new findings of this section, and
// passes the good leaves to `leaf` again.
void scan_again(const NodeLoader& loader, TreeScan& scan, BlockMap& blocks, Findings& findings,
                const LeafVisitor& leaf);

// The key before `key`, which must not be kMinKey.
format::Key key_before(const format::Key& key);
std::string to_string(const format::Key& key);

}  // namespace mdfs::store
