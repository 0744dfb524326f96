// SPDX-License-Identifier: Apache-2.0
#include "engine/relocate/read_piece.h"

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "engine/requests.h"
#include "format/parity_group.h"

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

OtherBytes::OtherBytes(Core& core, const format::StoredExtent& extent, std::vector<Segment>& segments) {
  const std::uint32_t block_size = core.store.block_size();
  const std::uint64_t most = extent.piece_blocks() * block_size;
  for (const format::GroupPiece& piece : extent.others.pieces()) {
    const std::uint64_t bytes = std::min<std::uint64_t>(align_up(piece.stored_bytes, block_size), most);
    BufferRef& buffer = buffers_.emplace_back(core.cache.acquire(bytes, Use::kBrief));
    append_segments({&piece.run, 1}, block_size, 0, bytes, buffer.data(), 0, segments);
  }
}

bool OtherBytes::make(const format::StoredExtent& extent, MutableBytes blocks) const {
  std::ranges::fill(blocks, std::byte{0});
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const std::size_t bytes = std::min<std::size_t>(extent.others.pieces()[i].stored_bytes, blocks.size());
    format::add_to_parity(blocks, ConstBytes(buffers_[i].data(), bytes));
  }
  return !buffers_.empty() && holds(extent, blocks);
}

Status read_from_others(Core& core, const format::StoredExtent& extent, MutableBytes blocks) {
  std::vector<Segment> segments;
  const OtherBytes others(core, extent, segments);
  MDFS_TRY(read_all(core.store, segments, core.options.largest_request_bytes));
  return others.make(extent, blocks) ? Status() : Status(Errc::kCorrupt, "extent.checksum");
}

Status read_any_piece(Core& core, const format::StoredExtent& extent, MutableBytes blocks) {
  Status read = read_piece(core, extent, blocks);
  if (!read.ok() && extent.has_copy()) read = read_piece(core, extent.by_copy(), blocks);
  if (!read.ok() && extent.others) read = read_from_others(core, extent, blocks);
  return read;
}

}  // namespace mdfs::engine
