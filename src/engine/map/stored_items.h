// Numbers of stored items of an object: pages of the extent table, or cells.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/core.h"

namespace mdfs::engine {

// Of [first, last], ascending, at most `limit`. Pages count if they have records or strips. Any thread.
Result<std::vector<std::uint64_t>> stored_items(Core& core, const OpenObject& object, std::uint64_t first,
                                                std::uint64_t last, std::size_t limit);
// The pages of these that have strips.
Result<std::vector<std::uint64_t>> pages_with_strips(Core& core, const OpenObject& object, std::uint64_t first,
                                                     std::uint64_t last, std::size_t limit);

}  // namespace mdfs::engine
