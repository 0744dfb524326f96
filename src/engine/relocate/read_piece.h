// Stored bytes that are read to be written elsewhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.h"
#include "engine/core.h"
#include "format/stored_extent.h"

namespace mdfs::engine {

// True if whole blocks hold the stored bytes of an extent. The rest of the last block has no meaning, and becomes zero.
bool holds(const format::StoredExtent& extent, MutableBytes blocks);
// Reads the runs of an extent into whole blocks. kCorrupt: they do not hold its bytes.
Status read_piece(Core& core, const format::StoredExtent& extent, MutableBytes blocks);

}  // namespace mdfs::engine
