// A set of byte ranges of one cache block: the valid bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "geometry/extent_grid.h"

namespace mdfs::engine {

// Disjoint, ascending, never touching half-open ranges. A value; no thread contract.
class ByteRanges {
 public:
  using Range = geometry::ByteRun;

  void add(std::uint32_t begin, std::uint32_t end);
  void clear() { ranges_.clear(); }
  // An empty range is always covered.
  bool covers(std::uint32_t begin, std::uint32_t end) const;
  // Some byte of [begin, end) is in the set.
  bool touches(std::uint32_t begin, std::uint32_t end) const;
  // The parts of [begin, end) that are not in the set, ascending.
  std::vector<Range> gaps(std::uint32_t begin, std::uint32_t end) const;
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

}  // namespace mdfs::engine
