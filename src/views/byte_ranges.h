// A set of byte ranges: the written parts of a window.
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

// Disjoint ranges that do not touch, in ascending order. One thread at a time.
class ByteRanges {
 public:
  void add(ByteRange range);  // first <= last
  bool empty() const { return ranges_.empty(); }
  std::size_t count() const { return ranges_.size(); }
  bool covers(ByteRange range) const;
  // The parts of `range` outside of the set, and inside.
  std::vector<ByteRange> gaps(ByteRange range) const;
  std::vector<ByteRange> parts(ByteRange range) const;
  std::uint64_t end() const { return ranges_.empty() ? 0 : ranges_.rbegin()->second; }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // first -> last
};

}  // namespace mdfs::views
