// The cache of tree nodes.
// SPDX-License-Identifier: Apache-2.0
#include "store/node_cache.h"

#include <utility>

namespace mdfs::store {

ConstNodePtr NodeCache::find(const format::Pointer& pointer) {
  const std::lock_guard lock(mutex_);
  const auto found = by_address_.find(pointer.address[0].packed());
  if (found == by_address_.end() || !(found->second->pointer == pointer)) return nullptr;
  Entry& entry = *found->second;
  if (!entry.pinned) entries_.splice(entries_.begin(), entries_, found->second);
  return entry.node;
}

void NodeCache::insert(const format::Pointer& pointer, ConstNodePtr node, bool pinned) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t address = pointer.address[0].packed();
  const auto found = by_address_.find(address);
  if (found != by_address_.end()) {
    // Loaded by two threads at once, or a leftover of an earlier use of the address.
    if (found->second->pointer == pointer) return;
    erase(found->second);
  }
  Entries& list = pinned ? pinned_ : entries_;
  const std::size_t bytes = node->memory_bytes();
  list.push_front({pointer, std::move(node), bytes, pinned});
  by_address_[address] = list.begin();
  bytes_ += bytes;
  evict();
}

void NodeCache::unpin(const format::Pointer& pointer) {
  const std::lock_guard lock(mutex_);
  const auto found = by_address_.find(pointer.address[0].packed());
  if (found == by_address_.end() || !(found->second->pointer == pointer) || !found->second->pinned) return;
  found->second->pinned = false;
  entries_.splice(entries_.begin(), pinned_, found->second);
  evict();
}

void NodeCache::forget(const format::Pointer& pointer) {
  const std::lock_guard lock(mutex_);
  const auto found = by_address_.find(pointer.address[0].packed());
  if (found != by_address_.end() && found->second->pointer == pointer) erase(found->second);
}

void NodeCache::erase(Entries::iterator entry) {
  bytes_ -= entry->bytes;
  by_address_.erase(entry->pointer.address[0].packed());
  (entry->pinned ? pinned_ : entries_).erase(entry);
}

void NodeCache::evict() {
  while (bytes_ > budget_bytes_ && !entries_.empty()) erase(std::prev(entries_.end()));
}

std::size_t NodeCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::size_t NodeCache::count() const {
  const std::lock_guard lock(mutex_);
  return by_address_.size();
}

}  // namespace mdfs::store
