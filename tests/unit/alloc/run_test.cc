// Merging runs.
// SPDX-License-Identifier: Apache-2.0
#include "alloc/run.h"

#include <gtest/gtest.h>

namespace mdfs::alloc {
namespace {

using Runs = std::vector<Run>;

TEST(RunTest, AdjacentRunsOfADiskAreMergedInWhateverOrderTheyCome) {
  const Runs runs = {{1, 12, 3}, {0, 15, 1}, {0, 10, 2}, {0, 30, 4}, {0, 12, 3}, {1, 9, 1}};
  const Runs expected = {{0, 10, 6}, {0, 30, 4}, {1, 9, 1}, {1, 12, 3}};
  EXPECT_EQ(merged(runs), expected);
  EXPECT_EQ(merged(expected), expected);
  EXPECT_TRUE(merged({}).empty());
}

TEST(RunTest, TheEndOfADiskDoesNotMeetTheBeginningOfTheNext) {
  const Runs runs = {{0, 0, 8}, {1, 8, 8}};
  EXPECT_EQ(merged(runs), runs);
}

TEST(RunTest, ARunIsNeverLongerThanItCanSay) {
  const Runs runs = {{0, 0, UINT32_MAX - 1}, {0, UINT32_MAX - 1, 1}, {0, UINT32_MAX, 1}};
  const Runs expected = {{0, 0, UINT32_MAX}, {0, UINT32_MAX, 1}};
  EXPECT_EQ(merged(runs), expected);
}

}  // namespace
}  // namespace mdfs::alloc
