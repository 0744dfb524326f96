// A vector whose first elements lie in the object, against std::vector.
// SPDX-License-Identifier: Apache-2.0
#include "base/small_vector.h"

#include <gtest/gtest.h>

#include <utility>

namespace mdfs {
namespace {

using Small = SmallVector<int, 2>;

TEST(SmallVectorTest, HoldsWhatAVectorHolds) {
  Small small;
  std::vector<int> plain;
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(std::vector<int>(small.begin(), small.end()), plain);
    EXPECT_EQ(small.size(), plain.size());
    EXPECT_EQ(small.empty(), plain.empty());
    small.push_back(i);
    plain.push_back(i);
    EXPECT_EQ(small.front(), 0);
    EXPECT_EQ(small.back(), i);
    EXPECT_EQ(small[small.size() / 2], plain[plain.size() / 2]);
  }
  small.clear();
  EXPECT_TRUE(small.empty());
  small.push_back(7);
  EXPECT_EQ(small, Small({7}));
}

TEST(SmallVectorTest, FewElementsNeedNoMemoryOfTheirOwn) {
  Small small{1, 2};
  EXPECT_EQ(small.heap_bytes(), 0u);
  small.push_back(3);
  EXPECT_GE(small.heap_bytes(), 3 * sizeof(int));
}

TEST(SmallVectorTest, CopiesAndMovesAreOfTheirOwn) {
  for (const Small& all : {Small{}, Small{1}, Small{1, 2}, Small{1, 2, 3}}) {
    Small copy = all;
    EXPECT_EQ(copy, all);
    copy.push_back(9);
    EXPECT_EQ(copy.size(), all.size() + 1);
    EXPECT_NE(copy, all);
    Small moved = std::move(copy);
    EXPECT_EQ(moved.back(), 9);
    copy = all;  // assigned to after the move
    EXPECT_EQ(copy, all);
  }
}

TEST(SmallVectorTest, AnElementOfItsOwnIsAppendedAsItIs) {
  Small small{4, 5};
  for (int i = 0; i < 20; ++i) small.push_back(small.front());
  EXPECT_EQ(small.size(), 22u);
  for (std::size_t i = 2; i < small.size(); ++i) EXPECT_EQ(small[i], 4);
}

}  // namespace
}  // namespace mdfs
