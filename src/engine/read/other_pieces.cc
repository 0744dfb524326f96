// One load at work: extents whose own piece is bad or away, made from the other pieces of their groups.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "engine/read/load_operation.h"
#include "format/parity_group.h"

namespace mdfs::engine {

bool LoadOperation::are_others_good(const Fetch& fetch) const {
  const std::vector<format::GroupPiece>& pieces = fetch.extent.record.others.pieces();
  return !pieces.empty() && std::all_of(pieces.begin(), pieces.end(),
                                        [&](const format::GroupPiece& piece) { return is_good(fetch, {piece.run}); });
}

std::vector<LoadOperation::OthersRange> LoadOperation::ranges_of_others(const Fetch& fetch) const {
  if (!object_.is_raw()) return {{0, fetch.extent.record.stored_bytes, 0}};
  std::vector<OthersRange> ranges;
  std::size_t at = 0;
  for (const std::uint32_t part : fetch.parts) {
    const ByteRanges::Range range = part_range(part);
    ranges.push_back({range.begin, range.end, at});
    at += align_up(std::size_t{range.end} - range.begin, device::kAlignment);
  }
  return ranges;
}

void LoadOperation::prepare_others(Fetch& fetch, std::uint32_t number, std::vector<Segment>& segments) {
  const std::vector<OthersRange> ranges = ranges_of_others(fetch);
  const OthersRange& last = ranges.back();
  const std::size_t bytes = last.at + align_up(std::size_t{last.end} - last.begin, device::kAlignment);
  fetch.others.clear();
  for (const format::GroupPiece& piece : fetch.extent.record.others.pieces()) {
    BufferRef& buffer = fetch.others.emplace_back(core_.cache.acquire(bytes, Use::kBrief));
    for (const OthersRange& range : ranges) {
      const std::uint32_t end = std::min(range.end, piece.stored_bytes);
      if (range.begin >= end) continue;
      append_segments({&piece.run, 1}, object_.block_size, range.begin, align_up(end, device::kAlignment),
                      buffer.data() + range.at, number, segments);
    }
  }
}

void LoadOperation::drop_buffers(Fetch& fetch) {
  fetch.stored = BufferRef();
  fetch.strips = BufferRef();
  fetch.others.clear();
}

std::size_t LoadOperation::buffer_bytes(const Fetch& fetch) {
  std::size_t bytes = fetch.stored.size() + fetch.strips.size();
  for (const BufferRef& other : fetch.others) bytes += other.size();
  return bytes;
}

void LoadOperation::make_from_others(Fetch& fetch) const {
  const std::vector<format::GroupPiece>& pieces = fetch.extent.record.others.pieces();
  for (const OthersRange& range : ranges_of_others(fetch)) {
    const MutableBytes sum(fetch.stored.data() + range.begin, range.end - range.begin);
    std::memset(sum.data(), 0, sum.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const std::uint32_t end = std::min(range.end, pieces[i].stored_bytes);
      if (range.begin < end)
        format::add_to_parity(sum, ConstBytes(fetch.others[i].data() + range.at, end - range.begin));
    }
  }
  fetch.others.clear();
}

}  // namespace mdfs::engine
