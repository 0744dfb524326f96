// The choice of what is written back next.
// SPDX-License-Identifier: Apache-2.0
#include "engine/write/write_choice.h"

#include <algorithm>

namespace mdfs::engine {

std::optional<WriteChoice> choose_to_write(std::span<const DirtyFacts> objects, std::uint64_t batch_bytes,
                                           bool pressed) {
  if (objects.empty()) return std::nullopt;
  const auto number_of = [&](auto found) { return static_cast<std::size_t>(found - objects.begin()); };
  const auto most_early = std::ranges::max_element(objects, {}, &DirtyFacts::early_bytes);
  if (most_early->early_bytes > 0) return WriteChoice{number_of(most_early), WhichBlocks::kPieces};
  const auto most_full_groups = std::ranges::max_element(objects, {}, &DirtyFacts::full_group_bytes);
  if (most_full_groups->full_group_bytes > 0 && (pressed || most_full_groups->full_group_bytes >= batch_bytes))
    return WriteChoice{number_of(most_full_groups), WhichBlocks::kFullGroups};
  if (!pressed) return std::nullopt;
  const auto first = std::ranges::min_element(objects, {}, &DirtyFacts::last_dirtied_ns);
  return WriteChoice{number_of(first), first->full_bytes > 0 ? WhichBlocks::kFull : WhichBlocks::kAll};
}

}  // namespace mdfs::engine
