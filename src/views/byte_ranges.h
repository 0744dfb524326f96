// A set of byte ranges: which parts of a window have been written.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace mdfs::views {

struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // one past
  bool operator==(const ByteRange&) const = default;
};

// Disjoint, not touching ranges in ascending order. Not for use by several threads at once.
class ByteRanges {
 public:
  void add(ByteRange range);  // first <= last
  bool empty() const { return ranges_.empty(); }
  std::size_t count() const { return ranges_.size(); }
  bool covers(ByteRange range) const;
  // What of `range` is not in the set / is in the set.
  std::vector<ByteRange> gaps(ByteRange range) const;
  std::vector<ByteRange> parts(ByteRange range) const;
  std::uint64_t end() const { return ranges_.empty() ? 0 : ranges_.rbegin()->second; }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // first -> last
};

}  // namespace mdfs::views
