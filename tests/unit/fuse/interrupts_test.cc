// Which callers do not live to see an answer.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/interrupts.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace mdfs::fuse {
namespace {

TEST(InterruptsTest, AThreadWithAPendingKillIsEnding) {
  EXPECT_TRUE(is_ending("Name:\tx\nSigPnd:\t0000000000000100\nShdPnd:\t0000000000000000\n"));
  EXPECT_TRUE(is_ending("Name:\tx\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000102\n"));
}

TEST(InterruptsTest, ASignalThatIsHandledEndsNoCall) {
  EXPECT_FALSE(is_ending("Name:\tx\nSigPnd:\t0000000000000002\nShdPnd:\t0000000000402200\n"));
  EXPECT_FALSE(is_ending(""));
  std::stringstream own;
  own << std::ifstream("/proc/self/status").rdbuf();
  ASSERT_NE(own.str().find("\nSigPnd:\t"), std::string::npos) << "the format of the kernel";
  EXPECT_FALSE(is_ending(own.str()));
}

}  // namespace
}  // namespace mdfs::fuse
