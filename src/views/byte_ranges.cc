// Sets of byte ranges.
// SPDX-License-Identifier: Apache-2.0
#include "views/byte_ranges.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace mdfs::views {

void ByteRanges::add(ByteRange range) {
  MDFS_CHECK(range.first <= range.last);
  if (range.first == range.last) return;
  auto it = ranges_.upper_bound(range.first);
  if (it != ranges_.begin() && std::prev(it)->second >= range.first) --it;
  while (it != ranges_.end() && it->first <= range.last) {
    range.first = std::min(range.first, it->first);
    range.last = std::max(range.last, it->second);
    it = ranges_.erase(it);
  }
  ranges_.emplace(range.first, range.last);
}

bool ByteRanges::covers(ByteRange range) const { return gaps(range).empty(); }

std::vector<ByteRange> ByteRanges::parts(ByteRange range) const {
  std::vector<ByteRange> found;
  auto it = ranges_.upper_bound(range.first);
  if (it != ranges_.begin()) --it;
  for (; it != ranges_.end() && it->first < range.last; ++it) {
    const ByteRange part{std::max(range.first, it->first), std::min(range.last, it->second)};
    if (part.first < part.last) found.push_back(part);
  }
  return found;
}

std::vector<ByteRange> ByteRanges::gaps(ByteRange range) const {
  std::vector<ByteRange> found;
  std::uint64_t at = range.first;
  for (const ByteRange& part : parts(range)) {
    if (part.first > at) found.push_back({at, part.first});
    at = part.last;
  }
  if (at < range.last) found.push_back({at, range.last});
  return found;
}

}  // namespace mdfs::views
