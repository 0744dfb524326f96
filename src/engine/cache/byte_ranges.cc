// A set of byte ranges of one cache block.
// SPDX-License-Identifier: Apache-2.0
#include "engine/cache/byte_ranges.h"

#include <algorithm>

namespace mdfs::engine {

namespace {

// The first range that ends after `position`.
auto first_ending_after(const std::vector<ByteRanges::Range>& ranges, std::uint32_t position) {
  return std::upper_bound(ranges.begin(), ranges.end(), position,
                          [](std::uint32_t p, const ByteRanges::Range& range) { return p < range.end; });
}

}  // namespace

void ByteRanges::add(std::uint32_t begin, std::uint32_t end) {
  if (begin >= end) return;
  // All ranges that overlap or touch [begin, end) become one.
  const auto first = std::lower_bound(ranges_.begin(), ranges_.end(), begin,
                                      [](const Range& range, std::uint32_t p) { return range.end < p; });
  auto last = first;
  while (last != ranges_.end() && last->begin <= end) {
    begin = std::min(begin, last->begin);
    end = std::max(end, last->end);
    ++last;
  }
  if (first == last) {
    ranges_.insert(first, Range{begin, end});
  } else {
    *first = Range{begin, end};
    ranges_.erase(first + 1, last);
  }
}

bool ByteRanges::covers(std::uint32_t begin, std::uint32_t end) const {
  if (begin >= end) return true;
  const auto range = first_ending_after(ranges_, begin);
  return range != ranges_.end() && range->begin <= begin && end <= range->end;
}

bool ByteRanges::touches(std::uint32_t begin, std::uint32_t end) const {
  if (begin >= end) return false;
  const auto range = first_ending_after(ranges_, begin);
  return range != ranges_.end() && range->begin < end;
}

std::vector<ByteRanges::Range> ByteRanges::gaps(std::uint32_t begin, std::uint32_t end) const {
  std::vector<Range> result;
  for (auto range = first_ending_after(ranges_, begin); begin < end; ++range) {
    if (range == ranges_.end() || range->begin >= end) {
      result.push_back({begin, end});
      break;
    }
    if (range->begin > begin) result.push_back({begin, range->begin});
    begin = std::max(begin, range->end);
  }
  return result;
}

}  // namespace mdfs::engine
