// Places for samples.
// SPDX-License-Identifier: Apache-2.0
#include "channel_places.h"

#include <iterator>

#include "base/checked.h"

namespace mdfs::client {

std::int64_t AreaAllocator::take(std::uint64_t bytes) {
  const std::uint64_t whole = align_up(bytes, kPageBytes);
  for (auto part = free_.begin(); part != free_.end(); ++part) {
    if (part->second < whole) continue;
    const auto [offset, length] = *part;
    free_.erase(part);
    if (length > whole) free_.emplace(offset + whole, length - whole);
    return static_cast<std::int64_t>(offset);
  }
  return -1;
}

void AreaAllocator::give_back(std::uint64_t offset, std::uint64_t bytes) {
  std::uint64_t length = align_up(bytes, kPageBytes);
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + length) {
    length += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += length;
      return;
    }
  }
  free_.emplace_hint(next, offset, length);
}

std::uint32_t BufferTable::remove(const std::byte* start) {
  const auto entry = buffers_.extract(start);
  return entry.empty() ? 0 : entry.mapped().number;
}

std::optional<BufferTable::Place> BufferTable::find(const std::byte* start, std::uint64_t bytes) const {
  auto entry = buffers_.upper_bound(start);
  if (entry == buffers_.begin()) return std::nullopt;
  --entry;
  const auto offset = static_cast<std::uint64_t>(start - entry->first);
  if (!inside(offset, bytes, entry->second.bytes)) return std::nullopt;
  return Place{entry->second.number, offset};
}

}  // namespace mdfs::client
