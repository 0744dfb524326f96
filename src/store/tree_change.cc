// Changing the tree: copies of nodes on the way, splits and merges.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "store/tree.h"

namespace mdfs::store {
namespace {

using format::kMaxBranches;
using format::kNodeRoom;
using format::leaf_item_bytes;

bool too_full(const TreeNode& node) {
  return node.is_leaf() ? node.item_bytes > kNodeRoom : node.body.branches.size() > kMaxBranches;
}

bool is_small(const TreeNode& node) {
  return node.is_leaf() ? node.item_bytes < kNodeRoom / 4 : node.body.branches.size() < kMaxBranches / 4;
}

// Merged nodes keep a quarter free, so that the next put does not split them again.
bool fit_together(const TreeNode& a, const TreeNode& b) {
  return a.is_leaf() ? a.item_bytes + b.item_bytes <= kNodeRoom / 4 * 3
                     : a.body.branches.size() + b.body.branches.size() <= kMaxBranches / 4 * 3;
}

template <typename Vector>
void move_tail(Vector& from, std::size_t first, Vector& to) {
  to.insert(to.end(), std::make_move_iterator(from.begin() + static_cast<std::ptrdiff_t>(first)),
            std::make_move_iterator(from.end()));
  from.resize(first);
}

template <typename Vector>
void erase_at(Vector& vector, std::size_t index) {
  vector.erase(vector.begin() + static_cast<std::ptrdiff_t>(index));
}

void add_branch(TreeNode& parent, std::size_t index, const Key& key, const NodePtr& child) {
  parent.body.branches.insert(parent.body.branches.begin() + static_cast<std::ptrdiff_t>(index), {key, {}});
  parent.changed.insert(parent.changed.begin() + static_cast<std::ptrdiff_t>(index), child);
}

void remove_branch(TreeNode& parent, std::size_t index) {
  erase_at(parent.body.branches, index);
  erase_at(parent.changed, index);
}

// Where a leaf divides: as evenly as items allow, or before its last item if that is the one just put (so that keys
// that come in order leave full leaves behind).
std::size_t leaf_division(const TreeNode& leaf, std::size_t changed_index) {
  const auto& items = leaf.body.items;
  const std::size_t last = items.size() - 1;
  if (changed_index == last && leaf.item_bytes - leaf_item_bytes(items[last].value.size()) <= kNodeRoom) return last;
  std::size_t left = 0;
  std::size_t best = 1;
  std::size_t best_difference = SIZE_MAX;
  for (std::size_t i = 1; i < items.size(); ++i) {
    left += leaf_item_bytes(items[i - 1].value.size());
    const std::size_t right = leaf.item_bytes - left;
    const std::size_t difference = left > right ? left - right : right - left;
    if (difference >= best_difference) break;
    best = i;
    best_difference = difference;
  }
  return best;
}

}  // namespace

bool is_empty(const TreeNode& node) { return node.is_leaf() ? node.body.items.empty() : node.body.branches.empty(); }

const Key& first_key(const TreeNode& node) {
  return node.is_leaf() ? node.body.items.front().key : node.body.branches.front().key;
}

NodePtr Tree::copy_of(const format::Pointer& pointer, NodeSource& source, std::vector<format::Pointer>& freed) {
  const ConstNodePtr node = source.find(pointer);
  MDFS_CHECK(node != nullptr);
  freed.push_back(pointer);
  ++changed_nodes_;
  return std::make_shared<TreeNode>(*node);
}

NodePtr Tree::changed_root(NodeSource& source, std::vector<format::Pointer>& freed) {
  if (!changed_root_) {
    changed_root_ = copy_of(root_.pointer, source, freed);
    root_.pointer = {};
  }
  return changed_root_;
}

NodePtr Tree::changed_child(TreeNode& parent, std::size_t index, NodeSource& source,
                            std::vector<format::Pointer>& freed) {
  NodePtr& child = parent.changed[index];
  if (!child) {
    child = copy_of(parent.body.branches[index].pointer, source, freed);
    parent.body.branches[index].pointer = {};
  }
  return child;
}

Tree::Path Tree::changed_path(const Key& key, std::uint16_t level, NodeSource& source,
                              std::vector<format::Pointer>& freed) {
  Path path{{changed_root(source, freed), 0}};
  while (path.back().node->body.level > level) {
    Step& step = path.back();
    step.index = step.node->branch_for(key);
    path.push_back({changed_child(*step.node, step.index, source, freed), 0});
  }
  return path;
}

void Tree::touch(const Key& key, std::uint16_t level, NodeSource& source, std::vector<format::Pointer>& freed) {
  changed_path(key, level, source, freed);
}

void Tree::put(const Key& key, ConstBytes value, NodeSource& source, std::vector<format::Pointer>& freed) {
  const auto same = [&](const format::LeafItem& item) {
    return item.key == key && std::equal(item.value.begin(), item.value.end(), value.begin(), value.end());
  };
  const LeafFound found = find_leaf(key, source);
  MDFS_CHECK(found.leaf != nullptr);
  const std::size_t index = found.leaf->item_at_or_after(key);
  if (index < found.leaf->body.items.size() && same(found.leaf->body.items[index])) return;

  Path path = changed_path(key, 0, source, freed);
  TreeNode& leaf = *path.back().node;
  auto& items = leaf.body.items;
  if (index < items.size() && items[index].key == key) {
    leaf.item_bytes -= leaf_item_bytes(items[index].value.size());
    items[index].value.assign(value.begin(), value.end());
  } else {
    items.insert(items.begin() + static_cast<std::ptrdiff_t>(index), {key, ByteVector(value.begin(), value.end())});
  }
  leaf.item_bytes += leaf_item_bytes(value.size());
  split_up(path, index);
}

void Tree::split_up(Path& path, std::size_t changed_index) {
  for (std::size_t depth = path.size(); depth-- > 0;) {
    TreeNode& node = *path[depth].node;
    if (!too_full(node)) return;
    const NodePtr right = split(node, changed_index);
    if (depth == 0) {
      const NodePtr root = new_node(static_cast<std::uint16_t>(node.body.level + 1));
      add_branch(*root, 0, first_key(node), path[0].node);
      add_branch(*root, 1, first_key(*right), right);
      changed_root_ = root;
      root_.level = root->body.level;
      return;
    }
    Step& parent = path[depth - 1];
    changed_index = parent.index + 1;
    // A first branch stands for keys below its own, too: then it gets a smaller one before another comes behind it.
    Key& own = parent.node->body.branches[parent.index].key;
    if (!(own < first_key(*right))) own = first_key(node);
    add_branch(*parent.node, changed_index, first_key(*right), right);
  }
}

NodePtr Tree::split(TreeNode& node, std::size_t changed_index) {
  const NodePtr right = new_node(node.body.level);
  if (!node.is_leaf()) {
    const std::size_t count = node.body.branches.size();
    const std::size_t division = changed_index + 1 == count ? count - 2 : count / 2;
    move_tail(node.body.branches, division, right->body.branches);
    move_tail(node.changed, division, right->changed);
    return right;
  }
  move_tail(node.body.items, leaf_division(node, changed_index), right->body.items);
  right->item_bytes = format::leaf_bytes(right->body);
  node.item_bytes -= right->item_bytes;
  MDFS_CHECK(!too_full(node) && !too_full(*right));
  return right;
}

void Tree::erase(const Key& key, NodeSource& source, std::vector<format::Pointer>& freed) {
  const LeafFound found = find_leaf(key, source);
  if (!found.leaf) return;  // its leaf was emptied by an erasure before: the key is gone
  const std::size_t index = found.leaf->item_at_or_after(key);
  if (index == found.leaf->body.items.size() || found.leaf->body.items[index].key != key) return;
  Path path = changed_path(key, 0, source, freed);
  TreeNode& leaf = *path.back().node;
  leaf.item_bytes -= leaf_item_bytes(leaf.body.items[index].value.size());
  erase_at(leaf.body.items, index);
  shrink_up(path, source, freed);
}

void Tree::shrink_up(Path& path, NodeSource& source, std::vector<format::Pointer>& freed) {
  for (std::size_t depth = path.size() - 1; depth > 0; --depth) {
    const TreeNode& node = *path[depth].node;
    Step& parent = path[depth - 1];
    if (is_empty(node)) {
      remove_branch(*parent.node, parent.index);
      --changed_nodes_;
      forget_node();
    } else if (!is_small(node) || !merge_with_neighbour(parent, source, freed)) {
      break;
    }
  }
  collapse_root();
}

// Joins the child at parent.index with a neighbour if both fit into one node; a neighbour that is not in memory is
// left alone.
bool Tree::merge_with_neighbour(Step& parent, NodeSource& source, std::vector<format::Pointer>& freed) {
  TreeNode& up = *parent.node;
  const auto look = [&](std::size_t i) -> ConstNodePtr {
    return up.changed[i] ? ConstNodePtr(up.changed[i]) : source.find(up.body.branches[i].pointer);
  };
  for (const bool to_left : {true, false}) {
    if (to_left ? parent.index == 0 : parent.index + 1 >= up.body.branches.size()) continue;
    const std::size_t left_index = to_left ? parent.index - 1 : parent.index;
    const ConstNodePtr right = look(left_index + 1);
    const ConstNodePtr left_seen = look(left_index);
    if (!right || !left_seen || !fit_together(*left_seen, *right)) continue;

    TreeNode& left = *changed_child(up, left_index, source, freed);
    const std::size_t seam = left.body.branches.size();
    left.body.items.insert(left.body.items.end(), right->body.items.begin(), right->body.items.end());
    left.body.branches.insert(left.body.branches.end(), right->body.branches.begin(), right->body.branches.end());
    left.changed.insert(left.changed.end(), right->changed.begin(), right->changed.end());
    left.item_bytes += right->item_bytes;
    // A former first branch may stand for smaller keys. It gets the bound that the parent had for it.
    if (!left.is_leaf()) left.body.branches[seam].key = up.body.branches[left_index + 1].key;
    if (up.changed[left_index + 1])
      --changed_nodes_;
    else
      freed.push_back(up.body.branches[left_index + 1].pointer);
    forget_node();
    remove_branch(up, left_index + 1);
    return true;
  }
  return false;
}

void Tree::collapse_root() {
  while (changed_root_ && !changed_root_->is_leaf() && changed_root_->body.branches.size() <= 1) {
    const NodePtr old = changed_root_;
    if (old->body.branches.empty()) {  // the last item is gone
      old->body.level = 0;
      root_.level = 0;
      return;
    }
    root_.level = static_cast<std::uint16_t>(old->body.level - 1);
    changed_root_ = old->changed[0];
    root_.pointer = changed_root_ ? format::Pointer{} : old->body.branches[0].pointer;
    --changed_nodes_;
    forget_node();
  }
}

// The count of a damaged volume may be too small, or too large.
void Tree::forget_node() {
  if (nodes_ > 1) --nodes_;
}

}  // namespace mdfs::store
