// When a rebuild starts by itself.
// SPDX-License-Identifier: Apache-2.0
#include "volume/automatic_rebuild.h"

#include <gtest/gtest.h>

namespace mdfs::volume {
namespace {

TEST(AutomaticRebuildTest, ADiskThatHasBeenLostForTheDelayIsDueOnce) {
  AutomaticRebuild rebuild(600);
  EXPECT_FALSE(rebuild.is_due(1000, 0));
  EXPECT_FALSE(rebuild.is_due(1005, 0b10));
  EXPECT_FALSE(rebuild.is_due(1604, 0b10));
  EXPECT_TRUE(rebuild.is_due(1605, 0b10));
  EXPECT_FALSE(rebuild.is_due(1610, 0b10));
  EXPECT_FALSE(rebuild.is_due(100'000, 0b10)) << "a rebuild that was stopped stays stopped";
}

TEST(AutomaticRebuildTest, ADiskThatComesBackInTimeIsNotDueAndBeginsAnewWhenItIsLostAgain) {
  AutomaticRebuild rebuild(600);
  EXPECT_FALSE(rebuild.is_due(0, 1));
  EXPECT_FALSE(rebuild.is_due(599, 0));
  EXPECT_FALSE(rebuild.is_due(700, 1));
  EXPECT_FALSE(rebuild.is_due(1299, 1));
  EXPECT_TRUE(rebuild.is_due(1300, 1));
  EXPECT_FALSE(rebuild.is_due(1301, 0));
  EXPECT_FALSE(rebuild.is_due(1302, 1));
  EXPECT_TRUE(rebuild.is_due(1902, 1)) << "lost again after its rebuild";
}

TEST(AutomaticRebuildTest, EachFurtherLostDiskIsDueAfterItsOwnDelay) {
  AutomaticRebuild rebuild(600);
  EXPECT_FALSE(rebuild.is_due(0, 1));
  EXPECT_FALSE(rebuild.is_due(300, std::uint64_t{1} << 63 | 1));
  EXPECT_TRUE(rebuild.is_due(600, std::uint64_t{1} << 63 | 1));
  EXPECT_FALSE(rebuild.is_due(899, std::uint64_t{1} << 63 | 1));
  EXPECT_TRUE(rebuild.is_due(900, std::uint64_t{1} << 63 | 1));
}

}  // namespace
}  // namespace mdfs::volume
