// A cache of tree nodes that are on the disks or being written; evicts the least recently used.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <unordered_map>

#include "store/tree.h"

namespace mdfs::store {

// Any thread may call any method; the mutex is the last in the lock order. A node stays alive with its holders. Pinned
// nodes are kept beyond the budget: they are being written, and cannot be read from the disks yet.
class NodeCache final : public NodeSource {
 public:
  explicit NodeCache(std::size_t budget_bytes) : budget_bytes_(budget_bytes) {}

  ConstNodePtr find(const format::Pointer& pointer) override;
  void insert(const format::Pointer& pointer, ConstNodePtr node, bool pinned);
  void unpin(const format::Pointer& pointer);
  // The node left the tree, and its address may be reused.
  void forget(const format::Pointer& pointer);

  std::size_t bytes() const;
  std::size_t count() const;

 private:
  struct Entry {
    format::Pointer pointer;
    ConstNodePtr node;
    std::size_t bytes = 0;
    bool pinned = false;
  };
  using Entries = std::list<Entry>;

  void erase(Entries::iterator entry);
  void evict();

  const std::size_t budget_bytes_;
  mutable std::mutex mutex_;  // guards all below
  Entries entries_;           // most recently used first
  Entries pinned_;
  std::unordered_map<std::uint64_t, Entries::iterator> by_address_;  // packed first address
  std::size_t bytes_ = 0;
};

}  // namespace mdfs::store
