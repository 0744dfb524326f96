// Nodes of the tree as they are on the disks, or are being written: the least recently used go when there are too many.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <unordered_map>

#include "store/tree.h"

namespace mdfs::store {

// Any thread may call any method; its mutex is the last in the lock order. Nodes handed out stay alive with their
// holders. Pinned nodes (being written: they cannot be read from the disks yet) are kept beyond the budget.
class NodeCache final : public NodeSource {
 public:
  explicit NodeCache(std::size_t budget_bytes) : budget_bytes_(budget_bytes) {}

  ConstNodePtr find(const format::Pointer& pointer) override;
  void insert(const format::Pointer& pointer, ConstNodePtr node, bool pinned);
  void unpin(const format::Pointer& pointer);
  // The node left the tree; its address will hold something else.
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
