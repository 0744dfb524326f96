// The scopes that say when a thread's calls are no longer wanted.
// SPDX-License-Identifier: Apache-2.0
#include "base/stop.h"

#include <gtest/gtest.h>

#include <thread>

namespace mdfs {
namespace {

TEST(StopTest, TheInnermostScopeOfTheThreadCounts) {
  EXPECT_FALSE(is_stopped());
  bool outer_stops = false;
  const StopScope outer([&] { return outer_stops; });
  EXPECT_FALSE(is_stopped());
  outer_stops = true;
  EXPECT_TRUE(is_stopped());
  {
    const StopScope inner([] { return false; });
    EXPECT_FALSE(is_stopped());
  }
  EXPECT_TRUE(is_stopped());
  std::thread([] { EXPECT_FALSE(is_stopped()); }).join();
}

}  // namespace
}  // namespace mdfs
