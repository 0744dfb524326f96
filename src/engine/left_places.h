// The places that rewritten extents have left, to which they may return.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "store/store.h"

namespace mdfs::engine {

// Where an extent lay before it was written anew elsewhere. Its neighbours are still there.
struct LeftPlace {
  std::uint64_t extent = 0;  // index of the extent
  std::uint64_t order = 0;   // Groups::order_of() of it
  store::Run run;
  std::uint64_t generation = 0;  // whose commit says that it has been left

  // May it be free, now that this generation is on the disks? One more than its own must be: recovery may fall back.
  // With that one it is being released.
  bool is_over(std::uint64_t committed) const { return committed > generation; }
  bool is_free_soon(std::uint64_t committed) const { return committed <= generation + 1; }
};

// By object, in memory alone: a mount begins without any. The store is asked to give such places to others last, and
// does so as far as it has room; what it refuses to keep is not remembered here. Any thread; under its mutex, which may
// be taken under any lock of an object, the store is called.
class LeftPlaces {
 public:
  explicit LeftPlaces(store::Store& store) : store_(store) {}

  // Extents of an object have left these. One that had left another place before and has not returned is still to
  // return to that one.
  void note(std::uint64_t object, const std::vector<LeftPlace>& left);
  // Places of an object that are over by now, at most so many: those that follow, in the order of their extents, the
  // ones that were taken last, and then those from the first on. They are the caller's, who gives each of them to
  // put_back() or release().
  std::vector<LeftPlace> take(std::uint64_t object, std::uint64_t committed, std::size_t most);
  void put_back(std::uint64_t object, const LeftPlace& place);
  void release(const LeftPlace& place);
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
    std::map<std::uint64_t, LeftPlace> by_order;
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
