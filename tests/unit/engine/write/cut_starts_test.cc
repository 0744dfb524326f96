// Where an image may end while it is shortened in steps.
// SPDX-License-Identifier: Apache-2.0
#include "engine/write/cut_starts.h"

#include <gtest/gtest.h>

#include <random>

namespace mdfs::engine {
namespace {

std::vector<std::uint64_t> offsets(const CutStarts& starts) {
  std::vector<std::uint64_t> found;
  for (std::uint64_t number = 0; number < starts.count; ++number) found.push_back(starts.at(number));
  return found;
}

using Offsets = std::vector<std::uint64_t>;

TEST(CutStarts, RowsOfExtentsStepsAndRunsOfExtentsBeginThere) {
  const geometry::ByteGeometry array{3, {6, 5, 10}, {4, 2, 3}};
  // The last byte is in step 5 of axis 0, in step 3 of axis 1, and is byte 7 of its row.
  const std::vector<CutStarts> found = cut_starts(array, 5 * 50 + 3 * 10 + 8, 60, 2);
  ASSERT_EQ(found.size(), 6u);
  EXPECT_EQ(offsets(found[0]), (Offsets{200}));
  EXPECT_EQ(offsets(found[1]), (Offsets{100, 150, 200, 250}));
  EXPECT_EQ(offsets(found[2]), (Offsets{250, 270}));
  EXPECT_EQ(offsets(found[3]), (Offsets{250, 260, 270, 280}));
  EXPECT_EQ(offsets(found[4]), (Offsets{280, 286}));
  EXPECT_EQ(offsets(found[5]), (Offsets{280, 283, 286}));
}

TEST(CutStarts, NothingBeginsBeforeTheNewSize) {
  const geometry::ByteGeometry array{2, {100, 10}, {4, 3}};
  const std::vector<CutStarts> found = cut_starts(array, 98, 94, 1);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(offsets(found[0]), (Offsets{96}));
  EXPECT_EQ(offsets(found[1]), (Offsets{96}));
}

TEST(CutStarts, OfAnyImageLieBetweenTheSizesAndComeCloserToTheEnd) {
  std::mt19937_64 random(1);
  const auto upto = [&](std::uint64_t most) { return random() % most + 1; };
  for (unsigned i = 0; i < 20000; ++i) {
    geometry::ByteGeometry array{static_cast<unsigned>(upto(5)), {}, {}};
    const std::uint64_t longest = i % 2 == 0 ? 9 : 1 << 12;
    std::uint64_t bytes = 1;
    for (unsigned axis = 0; axis < array.rank; ++axis) {
      bytes *= array.shape[axis] = upto(longest);
      array.extent[axis] = upto(i % 3 == 0 ? UINT64_MAX - 1 : 6);
    }
    const std::uint64_t old_size = upto(bytes), size = random() % old_size;
    std::uint64_t before = 0;
    for (const CutStarts& starts : cut_starts(array, old_size, size, upto(4))) {
      ASSERT_GE(starts.count, 1u);
      ASSERT_GE(starts.at(0), size);
      ASSERT_GE(starts.last(), before);
      ASSERT_LT(starts.last(), old_size);
      before = starts.last();
    }
    // The last extent alone can be cut off, unless the new end lies in it.
    if (before == 0)
      ASSERT_LT(old_size - 1 - size, array.extent[array.rank - 1]);
    else
      ASSERT_LT(old_size - 1 - before, array.extent[array.rank - 1]);
  }
}

}  // namespace
}  // namespace mdfs::engine
