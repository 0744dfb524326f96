// The simulated cache of a mount: which parts of extents are there, or on their way.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

namespace mdfs::sim {

// Number of the disk request that brings a part; each number is used once. 0: none.
using LoadId = std::uint64_t;

// Extents by age of use: the oldest is dropped first when they hold more than the budget. An extent consists of units,
// parts that are read by themselves, and counts with the units that it holds. One thread.
class ExtentCache {
 public:
  struct Key {
    const void* image = nullptr;
    std::uint64_t base = 0;  // tells images of one system apart
    std::uint64_t extent = 0;
    bool operator==(const Key&) const = default;
  };

  // 0: holds nothing.
  explicit ExtentCache(std::uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  bool enabled() const { return budget_bytes_ > 0; }
  std::uint64_t used_bytes() const { return used_bytes_; }

  // The request that brought the unit, or will; 0 if the unit is not there. Counts as a use of the extent.
  LoadId find(const Key& key, std::size_t unit);
  // The unit of `bytes` is there once the request is done; replaces what was there.
  void put(const Key& key, std::size_t unit, std::uint64_t bytes, LoadId load);

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  struct Entry {
    Key key;
    std::vector<LoadId> loads;  // by unit
    std::uint64_t bytes = 0;
  };
  using Entries = std::list<Entry>;

  Entries entries_;  // the last used first
  std::unordered_map<Key, Entries::iterator, Hash> by_key_;
  std::uint64_t budget_bytes_;
  std::uint64_t used_bytes_ = 0;
};

}  // namespace mdfs::sim
