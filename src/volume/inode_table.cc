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

Pin InodeTable::pin(Ino ino) {
  Shard& part = shard(ino);
  const std::lock_guard lock(part.mutex);
  std::unique_ptr<Inode>& inode = part.inodes[ino];
  if (!inode) inode = std::make_unique<Inode>(ino);
  ++inode->pins_;
  return {this, inode.get()};
}

Pin InodeTable::find(Ino ino) {
  Shard& part = shard(ino);
  const std::lock_guard lock(part.mutex);
  const auto found = part.inodes.find(ino);
  if (found == part.inodes.end()) return {};
  ++found->second->pins_;
  return {this, found->second.get()};
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
    count += part.inodes.size();
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
    free_on_disk = settle(part, inode);
  }
  if (free_on_disk) unreferenced_(ino);
}

bool InodeTable::settle(Shard& part, Inode& inode) {
  if (inode.pins_ > 0 || inode.lookups_ > 0 || inode.opens_ > 0) return false;
  const bool unlinked = inode.unlinked;
  const bool newer_than_the_tree = inode.has_content || inode.times_dirty || inode.write_error_kept;
  if (!newer_than_the_tree) part.inodes.erase(inode.ino);
  return unlinked;
}

}  // namespace mdfs::volume
