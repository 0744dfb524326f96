// The inodes in memory.
// SPDX-License-Identifier: Apache-2.0
#include "volume/inode_table.h"

#include <algorithm>
#include <utility>

namespace mdfs::volume {

Pin& Pin::operator=(Pin&& other) noexcept {
  if (this != &other) {
    if (inode_ != nullptr) table_->unpin(*inode_);
    table_ = other.table_;
    inode_ = std::exchange(other.inode_, nullptr);
  }
  return *this;
}

Pin::~Pin() {
  if (inode_ != nullptr) table_->unpin(*inode_);
}

Inode* InodeTable::get(Shard& part, Ino ino) {
  if (const auto found = part.inodes.find(ino); found != part.inodes.end()) return found->second.get();
  const auto counted = part.looked_up.find(ino);
  if (counted == part.looked_up.end()) return nullptr;
  std::unique_ptr<Inode>& inode = part.inodes[ino] = std::make_unique<Inode>(ino);
  inode->lookups_ = counted->second;
  part.looked_up.erase(counted);
  return inode.get();
}

Pin InodeTable::pin(Ino ino) {
  Shard& part = shard(ino);
  const std::lock_guard lock(part.mutex);
  Inode* inode = get(part, ino);
  if (inode == nullptr) inode = (part.inodes[ino] = std::make_unique<Inode>(ino)).get();
  ++inode->pins_;
  return {this, inode};
}

Pin InodeTable::find(Ino ino) {
  Shard& part = shard(ino);
  const std::lock_guard lock(part.mutex);
  Inode* const inode = get(part, ino);
  if (inode == nullptr) return {};
  ++inode->pins_;
  return {this, inode};
}

void InodeTable::add_lookup(Inode& inode) {
  const std::lock_guard lock(shard(inode.ino).mutex);
  ++inode.lookups_;
}

void InodeTable::add_open(Inode& inode) {
  const std::lock_guard lock(shard(inode.ino).mutex);
  ++inode.opens_;
}

void InodeTable::drop_lookups(Ino ino, std::uint64_t lookups) {
  {
    Shard& part = shard(ino);
    const std::lock_guard lock(part.mutex);
    if (const auto counted = part.looked_up.find(ino); counted != part.looked_up.end()) {
      if (counted->second <= lookups) {
        part.looked_up.erase(counted);
      } else {
        counted->second -= lookups;
      }
      return;
    }
  }
  const Pin inode = find(ino);
  if (!inode) return;
  const std::lock_guard lock(shard(ino).mutex);
  inode->lookups_ -= std::min(inode->lookups_, lookups);
}

void InodeTable::drop_open(Ino ino) {
  const Pin inode = find(ino);
  if (!inode) return;
  const std::lock_guard lock(shard(ino).mutex);
  inode->opens_ -= std::min<std::uint64_t>(inode->opens_, 1);
}

bool InodeTable::is_open(const Inode& inode) {
  const std::lock_guard lock(shard(inode.ino).mutex);
  return inode.opens_ > 0;
}

bool InodeTable::is_held(const Inode& inode) {
  const std::lock_guard lock(shard(inode.ino).mutex);
  return inode.opens_ > 0 || inode.lookups_ > 0;
}

std::vector<Pin> InodeTable::all() {
  std::vector<Pin> pins;
  for (Shard& part : shards_) {
    const std::lock_guard lock(part.mutex);
    for (auto& [ino, inode] : part.inodes) {
      ++inode->pins_;
      pins.push_back(Pin(this, inode.get()));
    }
  }
  return pins;
}

std::size_t InodeTable::size() {
  std::size_t count = 0;
  for (Shard& part : shards_) {
    const std::lock_guard lock(part.mutex);
    count += part.inodes.size() + part.looked_up.size();
  }
  return count;
}

void InodeTable::unpin(Inode& inode) {
  const Ino ino = inode.ino;
  Shard& part = shard(ino);
  bool free_on_disk = false;
  {
    const std::lock_guard lock(part.mutex);
    --inode.pins_;
    free_on_disk = evict_if_unused(part, inode);
  }
  if (free_on_disk) unreferenced_(ino);
}

bool InodeTable::evict_if_unused(Shard& part, Inode& inode) {
  if (inode.pins_ > 0 || inode.opens_ > 0) return false;
  const Ino ino = inode.ino;
  const bool unlinked = inode.unlinked;
  const bool newer_than_the_tree = inode.has_open_object || inode.times_dirty || inode.write_error_kept;
  if (inode.lookups_ > 0) {
    if (unlinked || newer_than_the_tree) return false;
    part.looked_up.emplace(ino, inode.lookups_);
    part.inodes.erase(ino);
    return false;
  }
  if (!newer_than_the_tree) part.inodes.erase(ino);
  return unlinked;
}

}  // namespace mdfs::volume
