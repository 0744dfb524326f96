// The limit of looking for an answer before sleeping.
// SPDX-License-Identifier: Apache-2.0
#include "channel/spin.h"

#include <gtest/gtest.h>

namespace mdfs::channel {
namespace {

TEST(SpinLimitTest, LooksInVainShortenItAndOneThatFindsLengthensIt) {
  SpinLimit limit;
  for (int i = 0; i < 20; ++i) limit.in_vain();
  EXPECT_EQ(limit.ns(), SpinLimit::kLeastNs);
  limit.found();
  EXPECT_EQ(limit.ns(), 2 * SpinLimit::kLeastNs);
  for (int i = 0; i < 20; ++i) limit.found();
  EXPECT_EQ(limit.ns(), SpinLimit::kMostNs);
}

}  // namespace
}  // namespace mdfs::channel
