// The order in which libmdfs reads a large window.
// SPDX-License-Identifier: Apache-2.0
#include "read_order.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <set>
#include <vector>

namespace mdfs::client {
namespace {

constexpr std::array<std::uint64_t, 4> kStart = {1, 3, 5, 2}, kLength = {3, 9, 13, 11};
constexpr std::array<std::uint32_t, 4> kExtent = {2, 4, 6, 5};

TEST(ReadOrderTest, EachSampleIsReadOnceAndNoExtentIsLeftAndVisitedAgain) {
  const CutWindow window{kStart, kLength, kExtent};
  std::vector<unsigned> seen(3 * 9 * 13 * 11);
  std::set<std::array<std::uint64_t, 3>> left;  // rows of extents, which lie along the fastest axis
  std::array<std::uint64_t, 3> last = {~std::uint64_t{0}, 0, 0};
  const int result = in_order_of_extents(window, [&](std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t sample = first; sample < first + count; ++sample) {
      ++seen.at(sample);
      std::array<std::uint64_t, 3> row{};
      std::uint64_t rest = sample / kLength[3];
      for (std::size_t axis = 3; axis-- > 0; rest /= kLength[axis])
        row[axis] = (kStart[axis] + rest % kLength[axis]) / kExtent[axis];
      if (row == last) continue;
      EXPECT_TRUE(left.insert(last).second);
      EXPECT_FALSE(left.contains(row));
      last = row;
    }
    return 0;
  });
  EXPECT_EQ(result, 0);
  EXPECT_EQ(seen, std::vector<unsigned>(seen.size(), 1));
}

TEST(ReadOrderTest, AnErrorEndsTheRead) {
  unsigned calls = 0;
  EXPECT_EQ(in_order_of_extents({kStart, kLength, kExtent}, [&](auto, auto) { return ++calls == 3 ? -5 : 0; }), -5);
  EXPECT_EQ(calls, 3U);
}

TEST(ReadOrderTest, ThePlanesOfALayerOfExtentsLieBetweenTwoVisits) {
  EXPECT_EQ(samples_between_visits({kStart, kLength, kExtent}), 2U * 9 * 13 * 11);
  constexpr std::array<std::uint32_t, 4> kFlat = {1, 1, 6, 5}, kOneSlow = {1, 4, 6, 5};
  EXPECT_EQ(samples_between_visits({kStart, kLength, kFlat}), 0U);
  EXPECT_EQ(samples_between_visits({kStart, kLength, kOneSlow}), 4U * 13 * 11);
  const std::span<const std::uint64_t> start(kStart), length(kLength);
  EXPECT_EQ(samples_between_visits({start.first(2), length.first(2), std::span(kExtent).first(2)}), 0U);
}

}  // namespace
}  // namespace mdfs::client
