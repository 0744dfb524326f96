// Loading: missing bytes of cache blocks come from all disks at once, are verified, decoded and put into the cache.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/core.h"
#include "engine/read/want.h"

namespace mdfs::engine {

class LoadOperation;

// Any thread.
class Loader {
 public:
  explicit Loader(Core& core) : core_(core) {}

  // Loads what is missing; what others are loading already is waited for. Returns when all wants have been handled;
  // the first error, if there is one, after all others have been served. Lets go of each cache block once it has been
  // handled, so that a long list does not hold more memory than the budget of loads.
  Status load(OpenObject& object, std::vector<Want> wants, const Loaded& loaded, const Stop& stop = {});
  // The background thread starts loading the plan, or a reader that needs a part of it before; what others load, and
  // what the budget has no room for, is left out. Errors are left to the reader. Dropped if too many plans wait.
  void start_later(const std::shared_ptr<OpenObject>& object, PlannedLoad plan);
  // All of each cache block.
  Status load_whole(OpenObject& object, const std::vector<std::pair<CacheBlockPtr, geometry::Coord>>& blocks);

 private:
  using Operations = std::vector<std::shared_ptr<LoadOperation>>;
  // Takes a waiting plan out of the list.
  void start_planned(const std::shared_ptr<OpenObject>& object, std::uint64_t number);
  // The same with all plans that have a cache block in common with the wants.
  void start_planned_for(OpenObject& object, const std::vector<Want>& wants);
  // Locks what a plan needs, to be started. The caller is inside the barrier and holds `locking`.
  void lock_plan(const std::shared_ptr<OpenObject>& object, const PlannedLoad& plan, Operations& operations);
  std::size_t most_at_once(const OpenObject& object) const;

  Core& core_;
};

}  // namespace mdfs::engine
