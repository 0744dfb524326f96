// Freeing the data of a deleted object, some items a transaction.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "geometry/geometry.h"
#include "store/transaction.h"

namespace mdfs::engine {

// Frees all blocks and data items of an object no longer open, in steps of `items`; true when nothing is left: extents
// with a geometry, else cells and inline bytes. Called by the volume for orphans, once a transaction.
Result<bool> free_some_data(store::Transaction& transaction, std::uint64_t object,
                            const std::optional<geometry::Geometry>& geometry, std::uint32_t block_size,
                            std::size_t items);

}  // namespace mdfs::engine
