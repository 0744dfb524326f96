// Loading: reads missing bytes of cache blocks from all disks at once, verifies and decodes them, and puts them into
// the cache.
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

  // Loads missing bytes, and waits for bytes that other threads load. Returns when all wants have been handled. Returns
  // the first error after all others have been served. Releases each cache block once it has been handled, so that a
  // long list holds no more memory than the budget of loads.
  Status load(OpenObject& object, std::vector<Want> wants, const Loaded& loaded, const Stop& stop = {});
  // Plans a load. The background thread starts the load, or a reader that needs a part of it first. The load leaves out
  // cache blocks that others load and those beyond the budget. A reader finds errors when it reads. Plans are dropped
  // if too many wait.
  void start_later(const std::shared_ptr<OpenObject>& object, PlannedLoad plan);
  // Loads all of each cache block.
  Status load_whole(OpenObject& object, const std::vector<std::pair<CacheBlockPtr, geometry::Coord>>& blocks);

 private:
  using Operations = std::vector<std::shared_ptr<LoadOperation>>;
  // Takes a waiting plan from the list and starts it.
  void start_planned(const std::shared_ptr<OpenObject>& object, std::uint64_t number);
  // The same for all plans that share a cache block with the wants.
  void start_planned_for(OpenObject& object, const std::vector<Want>& wants);
  // Locks the cache blocks of a plan; the caller starts `operations`. The caller is inside the barrier and holds
  // `locking`.
  void lock_plan(const std::shared_ptr<OpenObject>& object, const PlannedLoad& plan, Operations& operations);
  // The memory for loads of this thread.
  ByteBudget& budget() const;
  std::size_t most_at_once(const ByteBudget& budget, const OpenObject& object) const;
  Status wait_for_loads(const OpenObject& object, const std::vector<Want>& wants, const std::vector<std::size_t>& busy,
                        const Stop& stop);
  void hurry(const OpenObject& object, const geometry::Coord& extent);

  Core& core_;
};

}  // namespace mdfs::engine
