// Reading the tree.
// SPDX-License-Identifier: Apache-2.0
#include "store/reader.h"

#include <mutex>

namespace mdfs::store {

ConstNodePtr TreeReader::find(const format::Pointer& pointer) {
  const auto found = kept_.find(pointer);
  if (found != kept_.end()) return found->second;
  ConstNodePtr node = shared_.cache.find(pointer);
  if (node && keep_all_) kept_[pointer] = node;
  return node;
}

// A node that cannot be loaded may have been freed, and its place reused, since its pointer was read. It is an error
// only if the tree still holds the pointer at the next try.
Status TreeReader::load(const std::vector<NodeWanted>& wanted) {
  const auto nodes = shared_.io.load(wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!nodes[i].ok()) continue;
    shared_.cache.insert(wanted[i].pointer, *nodes[i], false);
    kept_[wanted[i].pointer] = *nodes[i];
  }
  if (nodes[0].ok()) return {};
  if (failed_ == wanted[0].pointer) return nodes[0].error();
  failed_ = wanted[0].pointer;
  return {};
}

Result<std::optional<ByteVector>> TreeReader::get(const Key& key) {
  for (;;) {
    std::shared_lock lock(shared_.mutex);
    const Tree::LeafFound found = shared_.tree.find_leaf(key, *this);
    if (found.leaf) {
      const auto& items = found.leaf->body.items;
      const std::size_t i = found.leaf->item_at_or_after(key);
      if (i == items.size() || items[i].key != key) return std::optional<ByteVector>();
      return std::optional<ByteVector>(items[i].value);
    }
    lock.unlock();
    MDFS_TRY(load(found.wanted));
  }
}

bool TreeReader::take_items(Key& next, const Key& last, std::size_t limit, std::vector<Item>& items,
                            std::vector<NodeWanted>& wanted) {
  for (;;) {
    Tree::LeafFound found = shared_.tree.find_leaf(next, *this, &last);
    if (!found.leaf) {
      wanted = std::move(found.wanted);
      return false;
    }
    const auto& from = found.leaf->body.items;
    for (std::size_t i = found.leaf->item_at_or_after(next); i < from.size(); ++i) {
      if (last < from[i].key || items.size() >= limit) return true;
      items.push_back({from[i].key, from[i].value});
    }
    if (items.size() >= limit || !found.next || last < *found.next) return true;
    next = *found.next;
  }
}

Result<std::vector<Item>> TreeReader::scan(const Key& first, const Key& last, std::size_t limit) {
  std::vector<Item> items;
  if (last < first || limit == 0) return items;
  Key next = first;
  std::uint64_t version = 0;
  for (;;) {
    std::vector<NodeWanted> wanted;
    {
      const std::shared_lock lock(shared_.mutex);
      if (version != shared_.version) {  // begin again, so that all items are of one moment
        items.clear();
        next = first;
        version = shared_.version;
      }
      if (take_items(next, last, limit, items, wanted)) return items;
    }
    MDFS_TRY(load(wanted));
  }
}

Status TreeReader::load_path(const Key& key, Footprint& footprint, std::optional<std::size_t> put_bytes) {
  for (;;) {
    std::shared_lock lock(shared_.mutex);
    const Tree::LeafFound found = shared_.tree.find_leaf(key, *this, nullptr, &footprint);
    if (found.leaf) {
      if (put_bytes) footprint.note_put(*found.leaf, key, *put_bytes);
      return {};
    }
    lock.unlock();
    MDFS_TRY(load(found.wanted));
  }
}

Tree::NodesFound TreeReader::nodes_from(const Key& from, std::size_t leaves) {
  for (;;) {
    Tree::NodesFound found;
    {
      const std::shared_lock lock(shared_.mutex);
      found = shared_.tree.nodes_from(from, leaves, *this);
    }
    if (!found.missing || !load({*found.missing}).ok()) return found;
  }
}

Result<bool> TreeReader::hold_node(const Key& key, std::uint16_t level, const format::Pointer& pointer) {
  Footprint footprint;
  MDFS_TRY(load_path(key, footprint));
  const std::shared_lock lock(shared_.mutex);
  return shared_.tree.holds(key, level, pointer, *this);
}

Result<Tree::NodesWhere> TreeReader::nodes_where(const Tree::PointerTest& test, std::uint16_t level, const Key& from) {
  for (;;) {
    std::shared_lock lock(shared_.mutex);
    Tree::NodesWhere found = shared_.tree.nodes_where(test, level, from, *this);
    lock.unlock();
    if (!found.wanted) return found;
    MDFS_TRY(load({*found.wanted}));
  }
}

Status TreeReader::check_root() {
  std::vector<NodeWanted> wanted;
  {
    const std::shared_lock lock(shared_.mutex);
    wanted.push_back({shared_.tree.root().pointer, shared_.tree.root().level});
  }
  const auto nodes = shared_.io.load(wanted);
  if (!nodes[0].ok()) return nodes[0].error();
  shared_.cache.insert(wanted[0].pointer, *nodes[0], false);
  return {};
}

}  // namespace mdfs::store
