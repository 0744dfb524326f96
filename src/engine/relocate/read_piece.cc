// SPDX-License-Identifier: Apache-2.0
#include "engine/relocate/read_piece.h"

#include <algorithm>
#include <vector>

#include "engine/requests.h"

namespace mdfs::engine {

bool holds(const format::StoredExtent& extent, MutableBytes blocks) {
  std::ranges::fill(blocks.subspan(extent.stored_bytes), std::byte{0});
  return extent.matches(blocks);
}

Status read_piece(Core& core, const format::StoredExtent& extent, MutableBytes blocks) {
  std::vector<Segment> segments;
  append_segments(extent.runs, core.store.block_size(), 0, blocks.size(), blocks.data(), 0, segments);
  MDFS_TRY(read_all(core.store, segments, core.options.largest_request_bytes));
  return holds(extent, blocks) ? Status() : Status(Errc::kCorrupt, "extent.checksum");
}

}  // namespace mdfs::engine
