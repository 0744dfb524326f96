// Freeing the data of a deleted object, some items in each transaction.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "geometry/geometry.h"
#include "store/transaction.h"

namespace mdfs::engine {

// Frees blocks and data items of an object that is no longer open, at most `items` items. The items are extents with a
// geometry, else cells and inline bytes. True when nothing is left. The volume calls this for orphans, once in each
// transaction.
Result<bool> free_some_data(store::Transaction& transaction, std::uint64_t object,
                            const std::optional<geometry::Geometry>& geometry, std::uint32_t block_size,
                            std::size_t items);

}  // namespace mdfs::engine
