// The copy-on-write B+tree in memory: finding leaves, and changing items; no I/O and no locks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/bytes.h"
#include "format/commit.h"
#include "format/key.h"
#include "format/node.h"
#include "format/pointer.h"

namespace mdfs::store {

using format::Key;

struct TreeNode;
using NodePtr = std::shared_ptr<TreeNode>;             // changed since the last commit: has no address yet
using ConstNodePtr = std::shared_ptr<const TreeNode>;  // as on the disks, or as being written: never changes

struct TreeNode {
  format::Node body;
  // Interior nodes: for each branch the changed child, or null if the branch's pointer says where the child is.
  std::vector<NodePtr> changed;
  std::size_t item_bytes = 0;  // leaves: sum of format::leaf_item_bytes

  bool is_leaf() const { return body.is_leaf(); }
  std::size_t memory_bytes() const;
  // Index of the branch to follow: the last one with a key not above `key`, or the first.
  std::size_t branch_for(const Key& key) const;
  std::size_t item_at_or_after(const Key& key) const;
};

bool is_empty(const TreeNode& node);
const Key& first_key(const TreeNode& node);  // of one that is not empty

// A node that must be loaded, and what is known of it.
struct NodeWanted {
  format::Pointer pointer;
  std::uint16_t level = 0;
  Key lower = format::kMinKey;
  Key upper = format::kMaxKey;
};

// Unchanged nodes in memory, by pointer; null if not there.
class NodeSource {
 public:
  virtual ~NodeSource() = default;
  virtual ConstNodePtr find(const format::Pointer& pointer) = 0;
};

// Distinct nodes on some paths: what a change there copies and may split.
struct Footprint {
  struct Growth {
    std::size_t items = 0;  // that make the leaf larger
    std::size_t bytes = 0;  // by how much, in sum
  };
  std::unordered_set<std::uint64_t> unchanged;  // packed first address
  std::unordered_map<const TreeNode*, Growth> leaves;
  std::unordered_set<const TreeNode*> interiors;
  // An item with a value of `value_bytes` will be put into its leaf.
  void note_put(const TreeNode& leaf, const Key& key, std::size_t value_bytes);
};

// By how many nodes a tree of `nodes` can grow when `items` items become larger by `bytes` in sum.
std::uint64_t worst_growth(std::uint64_t nodes, std::uint64_t items, std::uint64_t bytes);

// The caller holds a lock: shared for const methods, exclusive for the others.
class Tree {
 public:
  Tree(const Uuid& volume_uuid, const format::Root& root);

  struct LeafFound {
    ConstNodePtr leaf;               // null: `wanted` is missing
    std::optional<Key> next;         // smallest key that belongs to the leaf after it; absent for the last leaf
    std::vector<NodeWanted> wanted;  // the missing node first, then missing ones beside it up to `ahead`
  };
  // The leaf for `key`. `ahead`: also names up to kMaxAhead missing siblings that hold keys up to it.
  LeafFound find_leaf(const Key& key, NodeSource& source, const Key* ahead = nullptr,
                      Footprint* footprint = nullptr) const;
  static constexpr std::size_t kMaxAhead = 16;

  struct NodesFound {
    std::vector<NodeWanted> nodes;
    std::optional<Key> next;            // where to go on; absent after the last leaf
    std::optional<NodeWanted> missing;  // is not in memory, and nothing below it was looked at
  };
  // Unchanged nodes: up to `leaves` leaves from the one for `from` on, and those above them that begin at or after
  // `from`. The leaves need not be in memory.
  NodesFound nodes_from(const Key& from, std::size_t leaves, NodeSource& source) const;

  // Does `pointer` lead to the node at `level` on the path to `key`? All of the path is in memory.
  bool holds(const Key& key, std::uint16_t level, const format::Pointer& pointer, NodeSource& source) const;

  // Nodes at `level` whose pointers pass the test, unless they are changed anyhow: those below the parent that `from`
  // leads to.
  using PointerTest = std::function<bool(const format::Pointer&)>;
  struct NodesWhere {
    struct Found {
      Key key;  // leads to it
      format::Pointer pointer;
    };
    std::vector<Found> nodes;
    std::optional<Key> next;           // where the next parent begins; absent behind the last one
    std::optional<NodeWanted> wanted;  // missing in memory; the rest is not filled in
  };
  NodesWhere nodes_where(const PointerTest& test, std::uint16_t level, const Key& from, NodeSource& source) const;
  std::uint16_t level() const { return changed_root_ ? changed_root_->body.level : root_.level; }

  // All nodes on the path to `key` are in `source`, or were when the first of several changes began: puts come before
  // erasures then. Pointers of nodes that the change replaces go to `freed`.
  void put(const Key& key, ConstBytes value, NodeSource& source, std::vector<format::Pointer>& freed);
  void erase(const Key& key, NodeSource& source, std::vector<format::Pointer>& freed);
  // Makes the path to the node with this pointer changed, so that the next commit writes it anew; `key` lies below it.
  void touch(const Key& key, std::uint16_t level, NodeSource& source, std::vector<format::Pointer>& freed);

  std::size_t changed_nodes() const { return changed_nodes_; }
  std::uint64_t nodes() const { return nodes_; }
  // An upper bound of changed_nodes() after the puts of the footprint and any erasures on its paths.
  std::size_t worst_changed_nodes(const Footprint& footprint) const;

  // Gives every changed node, children first, to `write`, which makes it immutable and says where it goes.
  using WriteNode = std::function<format::Pointer(const NodePtr&)>;
  format::Root seal(const WriteNode& write);
  const format::Root& root() const { return root_; }  // as last sealed; null pointer fields while changed

 private:
  struct Step {
    NodePtr node;
    std::size_t index = 0;  // the branch taken
  };
  using Path = std::vector<Step>;

  NodePtr copy_of(const format::Pointer& pointer, NodeSource& source, std::vector<format::Pointer>& freed);
  NodePtr changed_root(NodeSource& source, std::vector<format::Pointer>& freed);
  NodePtr changed_child(TreeNode& parent, std::size_t index, NodeSource& source, std::vector<format::Pointer>& freed);
  Path changed_path(const Key& key, std::uint16_t level, NodeSource& source, std::vector<format::Pointer>& freed);
  void split_up(Path& path, std::size_t changed_index);
  NodePtr split(TreeNode& node, std::size_t changed_index);
  void shrink_up(Path& path, NodeSource& source, std::vector<format::Pointer>& freed);
  bool merge_with_neighbour(Step& parent, NodeSource& source, std::vector<format::Pointer>& freed);
  void collapse_root();
  format::Pointer seal_node(const NodePtr& node, const WriteNode& write);
  NodePtr new_node(std::uint16_t level);
  void forget_node();

  Uuid volume_uuid_;
  format::Root root_;
  NodePtr changed_root_;  // null: root_.pointer is the root
  std::size_t changed_nodes_ = 0;
  std::uint64_t nodes_ = 0;
};

}  // namespace mdfs::store
