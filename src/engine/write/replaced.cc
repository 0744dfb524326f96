// The records of replaced extents, for the versions that are read meanwhile.
// SPDX-License-Identifier: Apache-2.0
#include "engine/write/replaced.h"

#include "engine/read/window_version.h"

namespace mdfs::engine {

Replaced note_replaced(Core& core, OpenObject& object, const std::vector<Staged>& extents) {
  Replaced replaced;
  if (!object.is_image() || extents.size() > kMostReplacedNoted) return replaced;
  replaced.stored.resize(extents.size());
  std::vector<store::Run> runs;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    Result<MappedExtent> stored = core.extent_map.extent(object, extents[i].coord, false);
    if (!stored.ok()) continue;  // publishing will say why
    stored->append_runs(runs);
    replaced.stored[i] = std::move(*stored);
  }
  if (!runs.empty()) replaced.hold = core.store.hold(std::move(runs));
  return replaced;
}

void keep_for_versions(Core& core, OpenObject& object, const std::vector<Staged>& extents, const Replaced& replaced,
                       const geometry::Box& changed) {
  for (const std::shared_ptr<WindowVersion>& version : object.versions.all()) {
    std::vector<std::size_t> wanted;
    std::vector<store::Run> runs;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const std::optional<geometry::Box> part = geometry::part_in_extent(object.array(), extents[i].coord, changed);
      if (!part || !version->wants(extents[i].index, *part)) continue;
      wanted.push_back(i);
      if (replaced.stored.empty() || !replaced.stored[i]) continue;
      replaced.stored[i]->append_runs(runs);
    }
    if (wanted.empty()) continue;
    // Of what it wants alone. All of that is held by `replaced` until here.
    const std::shared_ptr<const store::BlockHold> hold = runs.empty() ? nullptr : core.store.hold(std::move(runs));
    const bool known = !replaced.stored.empty() && (replaced.hold == nullptr || !replaced.hold->is_broken());
    for (const std::size_t i : wanted) {
      CacheBlockPtr block = core.cache.peek(object.key_of(extents[i].index));
      if (block == nullptr) block = std::make_shared<CacheBlock>(object.key_of(extents[i].index));
      const std::lock_guard lock(block->mutex);
      version->keep(*block, known && replaced.stored[i] ? &*replaced.stored[i] : nullptr, hold);
    }
  }
}

}  // namespace mdfs::engine
