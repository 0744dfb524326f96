// A test that fails: the test run expects it to, which proves that it would see a failure.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

TEST(CanaryTest, ThisFailureIsSeenByTheTestRun) { EXPECT_EQ(1 + 1, 3); }
