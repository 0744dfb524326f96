// Home blocks: the reserved former places of rewritten extents, to which the extents may relocate.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "store/block_space.h"

namespace mdfs::engine {

// The home blocks of one rewritten extent: its former place, beside its neighbours.
struct Home {
  std::uint64_t extent = 0;  // index of the extent
  std::uint64_t order = 0;   // Groups::order_of() of it
  store::Run run;
  std::uint64_t generation = 0;  // the commit of this generation frees the home blocks

  // May the home blocks be free, once generation `committed` is on the disks? Recovery may fall back one generation, so
  // one more than their own must be there. is_free_soon(): that commit releases them.
  bool is_over(std::uint64_t committed) const { return committed > generation; }
  bool is_free_soon(std::uint64_t committed) const { return committed <= generation + 1; }
};

// Home blocks by object, in memory only: a mount begins without any. The store reserves home blocks, and gives them to
// other objects last. Home blocks that the store does not reserve are forgotten. Any thread. The mutex may be taken
// under any lock of an object, and is held while the store is called.
class HomeBlocks {
 public:
  explicit HomeBlocks(store::BlockSpace& space) : space_(space) {}

  // Extents of an object have been rewritten and leave these home blocks. An extent that was already away from home
  // keeps its first ones.
  void note(std::uint64_t object, const std::vector<Home>& homes);
  // Takes at most `most` home blocks of an object that are over. They come in the order of their extents, from the last
  // taken one on, and then from the first. The caller owns them, and gives each to put_back() or release().
  std::vector<Home> take(std::uint64_t object, std::uint64_t committed, std::size_t most);
  void put_back(std::uint64_t object, const Home& place);
  void release(const Home& place);
  // All of an object, or of all objects, without those that have been taken.
  void forget(std::uint64_t object);
  void forget_all();

  // Objects from which take() may return home blocks, ascending.
  std::vector<std::uint64_t> objects(std::uint64_t committed) const;
  // Of all objects, with those that have been taken.
  std::uint64_t count() const;

 private:
  static constexpr std::uint64_t kMost = 1u << 16;

  struct Places {
    std::map<std::uint64_t, Home> by_order;
    std::uint64_t next = 0;             // order from which the next ones are taken
    std::uint64_t oldest = UINT64_MAX;  // no place has a lower generation
  };
  void forget(Places& places);

  store::BlockSpace& space_;
  mutable std::mutex mutex_;  // guards all below
  std::unordered_map<std::uint64_t, Places> objects_;
  std::uint64_t count_ = 0;
};

}  // namespace mdfs::engine
