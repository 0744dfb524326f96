// Home blocks: the reserved former places of rewritten extents, to which the extents may relocate.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "store/store.h"

namespace mdfs::engine {

// The home blocks of one rewritten extent: where it lay before. Its neighbours are still there.
struct Home {
  std::uint64_t extent = 0;  // index of the extent
  std::uint64_t order = 0;   // Groups::order_of() of it
  store::Run run;
  std::uint64_t generation = 0;  // whose commit says that it has been left

  // May it be free, now that this generation is on the disks? One more than its own must be: recovery may fall back.
  // With that one it is being released.
  bool is_over(std::uint64_t committed) const { return committed > generation; }
  bool is_free_soon(std::uint64_t committed) const { return committed <= generation + 1; }
};

// Home blocks by object, in memory only: a mount begins without any. The store reserves them, and gives them to other
// objects last. Home blocks that the store does not reserve are forgotten. Any thread; the mutex may be taken under any
// lock of an object, and the store is called under it.
class HomeBlocks {
 public:
  explicit HomeBlocks(store::Store& store) : store_(store) {}

  // Extents of an object have been rewritten and leave these. An extent that was away from home already keeps its first
  // home.
  void note(std::uint64_t object, const std::vector<Home>& left);
  // Places of an object that are over by now, at most so many: those that follow, in the order of their extents, the
  // ones that were taken last, and then those from the first on. They are the caller's, who gives each of them to
  // put_back() or release().
  std::vector<Home> take(std::uint64_t object, std::uint64_t committed, std::size_t most);
  void put_back(std::uint64_t object, const Home& place);
  void release(const Home& place);
  // All of an object, or all that there are; those that have been taken left out.
  void forget(std::uint64_t object);
  void forget_all();

  // Objects of which take() may give something, ascending.
  std::vector<std::uint64_t> objects(std::uint64_t committed) const;
  // In all, those included that have been taken.
  std::uint64_t count() const;

 private:
  static constexpr std::uint64_t kMost = 1u << 16;

  struct Places {
    std::map<std::uint64_t, Home> by_order;
    std::uint64_t next = 0;             // order from which the next ones are taken
    std::uint64_t oldest = UINT64_MAX;  // no place has a lower generation
  };
  void forget(Places& places);

  store::Store& store_;
  mutable std::mutex mutex_;  // guards all below
  std::unordered_map<std::uint64_t, Places> objects_;
  std::uint64_t count_ = 0;
};

}  // namespace mdfs::engine
