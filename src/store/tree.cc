// Finding leaves, and handing changed nodes to a commit.
// SPDX-License-Identifier: Apache-2.0
#include "store/tree.h"

#include <algorithm>

#include "base/check.h"
#include "format/limits.h"

namespace mdfs::store {
namespace {

constexpr std::size_t kMinSplitRoom = 1900;  // bytes that must be put before a half of a split leaf splits again
constexpr std::size_t kBranchesBetweenSplits = format::kMaxBranches / 2 - 1;

}  // namespace

std::size_t TreeNode::memory_bytes() const {
  constexpr std::size_t kHeapOverhead = 16;
  std::size_t bytes = sizeof(TreeNode) + body.branches.capacity() * sizeof(format::Branch) +
                      changed.capacity() * sizeof(NodePtr) + body.items.capacity() * sizeof(format::LeafItem);
  if (is_leaf()) bytes += item_bytes + body.items.size() * kHeapOverhead;
  return bytes;
}

std::size_t TreeNode::branch_for(const Key& key) const {
  const auto after = std::upper_bound(body.branches.begin(), body.branches.end(), key,
                                      [](const Key& k, const format::Branch& branch) { return k < branch.key; });
  return after == body.branches.begin() ? 0 : static_cast<std::size_t>(after - body.branches.begin()) - 1;
}

std::size_t TreeNode::item_at_or_after(const Key& key) const {
  const auto found = std::lower_bound(body.items.begin(), body.items.end(), key,
                                      [](const format::LeafItem& item, const Key& k) { return item.key < k; });
  return static_cast<std::size_t>(found - body.items.begin());
}

Tree::Tree(const Uuid& volume_uuid, const format::Root& root)
    : volume_uuid_(volume_uuid), root_(root), nodes_(root.nodes) {
  if (!root_.pointer.is_null()) return;
  changed_root_ = new_node(0);
}

Tree::LeafFound Tree::find_leaf(const Key& key, NodeSource& source, const Key* ahead, Footprint* footprint) const {
  LeafFound found;
  ConstNodePtr node = changed_root_;
  NodeWanted wanted{root_.pointer, root_.level};
  const auto enter = [&](const NodePtr& changed) {
    node = changed ? ConstNodePtr(changed) : source.find(wanted.pointer);
    if (!node) return false;
    if (footprint == nullptr) return true;
    if (node->is_leaf())
      footprint->leaves.try_emplace(node.get());
    else
      footprint->interiors.insert(node.get());
    if (!changed) footprint->unchanged.insert(wanted.pointer.address[0].packed());
    return true;
  };
  if (!enter(changed_root_)) {
    found.wanted.push_back(wanted);
    return found;
  }
  while (!node->is_leaf()) {
    const ConstNodePtr parent = node;
    const auto& branches = parent->body.branches;
    const std::size_t i = parent->branch_for(key);
    // The first branch may stand for smaller keys, so it keeps the bound of its node.
    if (i > 0) wanted.lower = branches[i].key;
    if (i + 1 < branches.size()) {
      wanted.upper = branches[i + 1].key;
      found.next = branches[i + 1].key;
    }
    wanted.pointer = branches[i].pointer;
    wanted.level = static_cast<std::uint16_t>(parent->body.level - 1);
    if (enter(parent->changed[i])) continue;
    found.wanted.push_back(wanted);
    for (std::size_t j = i + 1; ahead != nullptr && wanted.level == 0 && j < branches.size() &&
                                found.wanted.size() < kMaxAhead && !(*ahead < branches[j].key);
         ++j) {
      if (parent->changed[j] || source.find(branches[j].pointer)) continue;
      const Key upper = j + 1 < branches.size() ? branches[j + 1].key : format::kMaxKey;
      found.wanted.push_back({branches[j].pointer, 0, branches[j].key, upper});
    }
    return found;
  }
  found.leaf = node;
  return found;
}

Tree::NodesFound Tree::nodes_from(const Key& from, std::size_t leaves, NodeSource& source) const {
  NodesFound found;
  ConstNodePtr changed = changed_root_;
  NodeWanted at{root_.pointer, changed ? changed->body.level : root_.level};
  for (;;) {
    if (!changed && (at.level == 0 || !(at.lower < from))) found.nodes.push_back(at);
    if (at.level == 0) return found;
    const ConstNodePtr node = changed ? changed : source.find(at.pointer);
    if (!node) {
      found.missing = at;
      return found;
    }
    const auto& branches = node->body.branches;
    const auto child = [&](std::size_t i) {
      NodeWanted below{branches[i].pointer, static_cast<std::uint16_t>(at.level - 1), at.lower, at.upper};
      if (i > 0) below.lower = branches[i].key;
      if (i + 1 < branches.size()) below.upper = branches[i + 1].key;
      return below;
    };
    std::size_t i = node->branch_for(from);
    if (at.level == 1) {
      for (; i < branches.size() && leaves > 0; ++i, --leaves)
        if (!node->changed[i]) found.nodes.push_back(child(i));
      if (i < branches.size()) found.next = branches[i].key;
      return found;
    }
    if (i + 1 < branches.size()) found.next = branches[i + 1].key;
    at = child(i);
    changed = node->changed[i];
  }
}

Tree::NodesWhere Tree::nodes_where(const PointerTest& test, std::uint16_t level, const Key& from,
                                   NodeSource& source) const {
  NodesWhere found;
  const auto take = [&](const Key& key, const format::Pointer& pointer) {
    if (test(pointer)) found.nodes.push_back({key, pointer});
  };
  ConstNodePtr node = changed_root_;
  NodeWanted wanted{root_.pointer, root_.level};
  if (level >= this->level()) {
    if (level == this->level() && !node) take(from, root_.pointer);
    return found;
  }
  for (;;) {
    if (!node) node = source.find(wanted.pointer);
    if (!node) {
      found.wanted = wanted;
      return found;
    }
    const auto& branches = node->body.branches;
    const std::size_t i = node->branch_for(from);
    if (node->body.level == level + 1) {
      for (std::size_t j = 0; j < branches.size(); ++j)
        if (!node->changed[j])
          take(j == 0 ? std::max(wanted.lower, branches[j].key) : branches[j].key, branches[j].pointer);
      return found;
    }
    if (i > 0) wanted.lower = branches[i].key;
    if (i + 1 < branches.size()) wanted.upper = branches[i + 1].key, found.next = branches[i + 1].key;
    wanted.pointer = branches[i].pointer;
    wanted.level = static_cast<std::uint16_t>(node->body.level - 1);
    node = ConstNodePtr(node->changed[i]);
  }
}

bool Tree::holds(const Key& key, std::uint16_t level, const format::Pointer& pointer, NodeSource& source) const {
  format::Pointer at = root_.pointer;
  ConstNodePtr node = changed_root_;
  for (std::uint16_t here = root_.level;; --here) {
    if (here == level) return !node && at == pointer;
    if (!node) node = source.find(at);
    if (!node || node->is_leaf()) return false;
    const ConstNodePtr parent = node;
    const std::size_t i = parent->branch_for(key);
    at = parent->body.branches[i].pointer;
    node = parent->changed[i];
  }
}

void Footprint::note_put(const TreeNode& leaf, const Key& key, std::size_t value_bytes) {
  std::size_t bytes = format::leaf_item_bytes(value_bytes);
  const std::size_t index = leaf.item_at_or_after(key);
  if (index < leaf.body.items.size() && leaf.body.items[index].key == key) {
    const std::size_t old = format::leaf_item_bytes(leaf.body.items[index].value.size());
    if (bytes <= old) return;
    bytes -= old;
  }
  Growth& growth = leaves[&leaf];
  ++growth.items;
  growth.bytes += bytes;
}

// Each put splits one leaf at most; each leaf that there is splits for being full (twice, if at its right end first),
// and new ones as worst_changed_nodes() has it.
std::uint64_t worst_growth(std::uint64_t nodes, std::uint64_t items, std::uint64_t bytes) {
  return std::min(items, 2 * (nodes + bytes / kMinSplitRoom));
}

// A leaf that has room for what is put into it does not split. Else it splits once for being full already; then at
// least kMinSplitRoom bytes must come before a half of it splits again, but for a split at the right end, which may be
// followed by one more at once. The same by branches above; they have room for the new leaves as a rule.
std::size_t Tree::worst_changed_nodes(const Footprint& footprint) const {
  std::size_t leaf_splits = 0;
  for (const auto& [leaf, growth] : footprint.leaves)
    if (leaf->item_bytes + growth.bytes > format::kNodeRoom)
      leaf_splits += std::min(growth.items, 2 * (1 + growth.bytes / kMinSplitRoom));
  std::size_t interior_splits = 0;
  if (leaf_splits > 0) {
    const auto has_room = [&](const TreeNode* node) {
      return node->body.branches.size() + leaf_splits <= format::kMaxBranches;
    };
    const bool roomy = leaf_splits < format::kMaxBranches &&
                       std::all_of(footprint.interiors.begin(), footprint.interiors.end(), has_room);
    const std::size_t levels = static_cast<std::size_t>(root_.level) + 2;
    if (!roomy)
      interior_splits =
          levels + std::min(leaf_splits, 2 * (footprint.interiors.size() + leaf_splits / kBranchesBetweenSplits));
    else if (footprint.interiors.empty())
      interior_splits = 1;  // a leaf that was the root gets one above it
  }
  return changed_nodes_ + footprint.unchanged.size() + leaf_splits + interior_splits;
}

format::Root Tree::seal(const WriteNode& write) {
  if (changed_root_) {
    root_.kind = MDFS_ROOT_MAIN;
    root_.level = changed_root_->body.level;
    root_.pointer = seal_node(changed_root_, write);
    changed_root_ = nullptr;
  }
  MDFS_CHECK(changed_nodes_ == 0);
  root_.nodes = nodes_;
  return root_;
}

format::Pointer Tree::seal_node(const NodePtr& node, const WriteNode& write) {
  for (std::size_t i = 0; i < node->changed.size(); ++i) {
    if (!node->changed[i]) continue;
    node->body.branches[i].pointer = seal_node(node->changed[i], write);
    node->changed[i] = nullptr;
  }
  --changed_nodes_;
  return write(node);
}

NodePtr Tree::new_node(std::uint16_t level) {
  auto node = std::make_shared<TreeNode>();
  node->body.volume_uuid = volume_uuid_;
  node->body.owner = MDFS_ROOT_MAIN;
  node->body.level = level;
  ++changed_nodes_;
  if (nodes_ < format::kMaxNodes) ++nodes_;
  return node;
}

}  // namespace mdfs::store
