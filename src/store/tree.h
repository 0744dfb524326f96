// The copy-on-write B+tree in memory: finds leaves and changes items; no I/O and no locks.
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
using ConstNodePtr = std::shared_ptr<const TreeNode>;  // on the disks, or being written: never changes

struct TreeNode {
  format::Node body;
  // Interior nodes: the changed child of each branch, or null where the branch's pointer names the child.
  std::vector<NodePtr> changed;
  std::size_t item_bytes = 0;  // leaves: sum of format::leaf_item_bytes

  bool is_leaf() const { return body.is_leaf(); }
  std::size_t memory_bytes() const;
  // Index of the branch to follow: the last one with a key not above `key`, or the first.
  std::size_t branch_for(const Key& key) const;
  std::size_t item_at_or_after(const Key& key) const;
};

bool is_empty(const TreeNode& node);
const Key& first_key(const TreeNode& node);  // the node must not be empty

// A node that must be loaded, with the keys that it may have.
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

// The distinct nodes on some paths: a change there copies them and may split them.
struct Footprint {
  struct Growth {
    std::size_t items = 0;  // that make the leaf larger
    std::size_t bytes = 0;  // by which they do, in sum
  };
  std::unordered_set<std::uint64_t> unchanged;  // packed first address
  std::unordered_map<const TreeNode*, Growth> leaves;
  std::unordered_set<const TreeNode*> interiors;
  // Adds an item with a value of `value_bytes` that will be put into its leaf.
  void note_put(const TreeNode& leaf, const Key& key, std::size_t value_bytes);
};

// The largest growth, in nodes, of a tree of `nodes` when `items` items grow by `bytes` in sum.
std::uint64_t worst_growth(std::uint64_t nodes, std::uint64_t items, std::uint64_t bytes);

// The caller holds a lock: shared for const methods, exclusive for the others.
class Tree {
 public:
  Tree(const Uuid& volume_uuid, const format::Root& root);

  struct LeafFound {
    ConstNodePtr leaf;               // null: `wanted` names the missing node
    std::optional<Key> next;         // smallest key of the next leaf; absent for the last leaf
    std::vector<NodeWanted> wanted;  // the missing node first, then missing siblings up to `ahead`
  };
  // The leaf for `key`. `ahead`: also names up to kMaxAhead missing siblings with keys up to this one.
  LeafFound find_leaf(const Key& key, NodeSource& source, const Key* ahead = nullptr,
                      Footprint* footprint = nullptr) const;
  static constexpr std::size_t kMaxAhead = 16;

  struct NodesFound {
    std::vector<NodeWanted> nodes;
    std::optional<Key> next;            // start of the next call; absent after the last leaf
    std::optional<NodeWanted> missing;  // not in memory; nodes below it are left out
  };
  // Unchanged nodes: up to `leaves` leaves from the one for `from` on, and the nodes above them that begin at or after
  // `from`. The leaves need not be in memory.
  NodesFound nodes_from(const Key& from, std::size_t leaves, NodeSource& source) const;

  // True if `pointer` names the node at `level` on the path to `key`. All of the path must be in memory.
  bool holds(const Key& key, std::uint16_t level, const format::Pointer& pointer, NodeSource& source) const;

  // Unchanged nodes at `level` whose pointers pass the test, below the parent on the path to `from`.
  using PointerTest = std::function<bool(const format::Pointer&)>;
  struct NodesWhere {
    struct Found {
      Key key;  // lies below the node
      format::Pointer pointer;
    };
    std::vector<Found> nodes;
    std::optional<Key> next;           // start of the next parent; absent after the last one
    std::optional<NodeWanted> wanted;  // not in memory; the other fields are empty then
  };
  NodesWhere nodes_where(const PointerTest& test, std::uint16_t level, const Key& from, NodeSource& source) const;
  std::uint16_t level() const { return changed_root_ ? changed_root_->body.level : root_.level; }

  // All nodes on the path to `key` are in `source`. In a series of changes they were there at its beginning, and puts
  // come before erasures. Adds pointers of replaced nodes to `freed`.
  void put(const Key& key, ConstBytes value, NodeSource& source, std::vector<format::Pointer>& freed);
  void erase(const Key& key, NodeSource& source, std::vector<format::Pointer>& freed);
  // Marks the path to the node with this pointer as changed, so that the next commit rewrites the node. `key` lies
  // below the node.
  void touch(const Key& key, std::uint16_t level, NodeSource& source, std::vector<format::Pointer>& freed);

  std::size_t changed_nodes() const { return changed_nodes_; }
  std::uint64_t nodes() const { return nodes_; }
  // An upper bound of changed_nodes() after the puts of the footprint, and any erasures on its paths.
  std::size_t worst_changed_nodes(const Footprint& footprint) const;

  // Passes every changed node, children first, to `write`, which makes the node immutable and returns its place.
  using WriteNode = std::function<format::Pointer(const NodePtr&)>;
  format::Root seal(const WriteNode& write);
  const format::Root& root() const { return root_; }  // as last sealed; pointer fields are null after a change

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
