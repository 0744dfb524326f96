// Loading: missing bytes of units come from all disks at once, are verified, decoded and put into the cache.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/core.h"

namespace mdfs::engine {

// What somebody wants of a unit.
struct Want {
  UnitPtr unit;
  geometry::Coord coord{};
  std::vector<ByteRanges::Range> ranges;
};

// Called once for each want that has all its bytes, by any of the threads at work, without a lock held. The buffer is
// the unit's (none: zeros), its wanted bytes are valid and do not change while the hold lasts.
using Loaded = std::function<void(std::size_t want, const BufferRef& buffer)>;

// Any thread.
class Loader {
 public:
  explicit Loader(Core& core) : core_(core) {}

  // Loads what is missing; what others are loading already is waited for. Returns when all wants have been handled;
  // the first error, if there is one, after all others have been served. Lets go of each unit once it has been handled,
  // so that a long list does not hold more memory than the budget of loads.
  Status load(Content& content, std::vector<Want> wants, const Loaded& loaded);
  // Starts loading and returns; what others load, and what the budget has no room for, is left out. Errors are left to
  // who reads later.
  void start(const std::shared_ptr<Content>& content, const std::vector<Want>& wants);
  // All of each unit.
  Status load_whole(Content& content, const std::vector<std::pair<UnitPtr, geometry::Coord>>& units);

 private:
  Core& core_;
};

}  // namespace mdfs::engine
