// Items of a scanned tree by their keys.
// SPDX-License-Identifier: Apache-2.0
#include "store/check/item_lookup.h"

#include <algorithm>

#include "base/check.h"

namespace mdfs::store {

using format::Key;
using format::LeafItem;

const ItemLookup::Leaf& ItemLookup::leaf_of(const Key& key) {
  auto kept = std::find_if(leaves_.begin(), leaves_.end(),
                           [&](const Leaf& leaf) { return !(key < leaf.ref->lower) && !(leaf.ref->upper < key); });
  if (kept == leaves_.end()) {
    const auto ref = std::partition_point(tree_.leaves.begin(), tree_.leaves.end(),
                                          [&](const NodeRef& one) { return one.upper < key; });
    MDFS_CHECK(ref != tree_.leaves.end());  // the leaves tile all keys
    Leaf leaf{&*ref, std::nullopt};
    if (!ref->lost) leaf.node = std::move(loader_.load({&*ref, 1}).front().node);
    if (leaves_.size() == kKept) leaves_.pop_back();
    kept = leaves_.insert(leaves_.begin(), std::move(leaf));
  }
  std::rotate(leaves_.begin(), kept, kept + 1);
  return leaves_.front();
}

const LeafItem* ItemLookup::first_item(const Leaf& leaf, const Key& from) {
  if (!leaf.node) return nullptr;
  const std::vector<LeafItem>& list = leaf.node->items;
  const auto item = std::lower_bound(list.begin(), list.end(), from,
                                     [](const LeafItem& one, const Key& wanted) { return one.key < wanted; });
  return item == list.end() ? nullptr : &*item;
}

Result<std::optional<ByteVector>> ItemLookup::get(const Key& key) {
  const LeafItem* const item = first_item(leaf_of(key), key);
  if (item == nullptr || item->key != key) return std::optional<ByteVector>();
  return std::optional(item->value);
}

std::optional<LeafItem> ItemLookup::next(Key from, const Key& last) {
  while (from <= last) {
    const Leaf& leaf = leaf_of(from);
    const LeafItem* const item = first_item(leaf, from);
    if (item != nullptr) return item->key <= last ? std::optional(*item) : std::nullopt;
    if (!(leaf.ref->upper < last)) break;
    from = (leaf.ref + 1)->lower;
  }
  return std::nullopt;
}

}  // namespace mdfs::store
