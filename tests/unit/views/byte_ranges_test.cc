// Sets of byte ranges against a plain bitmap.
// SPDX-License-Identifier: Apache-2.0
#include "views/byte_ranges.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace mdfs::views {
namespace {

constexpr std::uint64_t kSize = 64;

std::vector<ByteRange> runs(const std::vector<bool>& bits, bool value, ByteRange range) {
  std::vector<ByteRange> found;
  for (std::uint64_t i = range.first; i < range.last; ++i) {
    if (bits[i] != value) continue;
    if (!found.empty() && found.back().last == i) {
      ++found.back().last;
    } else {
      found.push_back({i, i + 1});
    }
  }
  return found;
}

RC_GTEST_PROP(ByteRanges, AgreesWithABitmap, ()) {
  ByteRanges set;
  std::vector<bool> bits(kSize, false);
  const auto some_range = [] {
    const auto first = *rc::gen::inRange<std::uint64_t>(0, kSize);
    return ByteRange{first, *rc::gen::inRange<std::uint64_t>(first, kSize + 1)};
  };
  const int steps = *rc::gen::inRange(0, 12);
  for (int step = 0; step < steps; ++step) {
    const ByteRange range = some_range();
    set.add(range);
    for (std::uint64_t i = range.first; i < range.last; ++i) bits[i] = true;
    const ByteRange asked = some_range();
    RC_ASSERT(set.gaps(asked) == runs(bits, false, asked));
    RC_ASSERT(set.parts(asked) == runs(bits, true, asked));
    RC_ASSERT(set.covers(asked) == runs(bits, false, asked).empty());
    RC_ASSERT(set.count() == runs(bits, true, {0, kSize}).size());
  }
}

}  // namespace
}  // namespace mdfs::views
