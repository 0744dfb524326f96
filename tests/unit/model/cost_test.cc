// The grammar of costs, there and back.
// SPDX-License-Identifier: Apache-2.0
#include "model/cost.h"

#include <gtest/gtest.h>

namespace mdfs::model {
namespace {

TEST(CostTest, ATransferAddsFullPartAndConstantBytes) {
  const auto cost = parse_cost("(full + 2 part + 64 B) / 1 MB/s");
  ASSERT_TRUE(cost.ok()) << cost.error().message();
  EXPECT_EQ(cost->kind, Cost::Kind::kTransfer);
  EXPECT_DOUBLE_EQ(cost->transfer_s(1000, 100, 0), (1000 + 200 + 64) / 1e6);
}

TEST(CostTest, SimpleFormsAreRead) {
  EXPECT_DOUBLE_EQ(parse_cost("20 ms")->low_s, 0.020);
  EXPECT_EQ(parse_cost("seek 10 ms")->kind, Cost::Kind::kSeek);
  EXPECT_DOUBLE_EQ(parse_cost("uniform 1 ms .. 5 ms")->low_s, 0.001);
  EXPECT_DOUBLE_EQ(parse_cost("uniform 1 ms .. 5 ms")->high_s, 0.005);
  EXPECT_DOUBLE_EQ(parse_cost("exponential 10 ms")->low_s, 0.010);
  EXPECT_EQ(parse_cost("head")->kind, Cost::Kind::kHead);
  EXPECT_DOUBLE_EQ(parse_cost("full/4 MiB/s")->transfer_s(1048576, 0, 0), 0.25);
  EXPECT_DOUBLE_EQ(parse_cost("3 part / 75 MB/s")->part, 3);
  EXPECT_DOUBLE_EQ(parse_cost("64 B / 75 MB/s")->bytes, 64);
}

TEST(CostTest, EveryCostIsReadBackFromItsText) {
  for (const char* text : {"20 ms", "seek 0.1 us", "uniform 0 ms .. 20 ms", "exponential 3 ns", "head",
                           "(full + 1.5 part + 7 B) / 2.28 MiB/s", "full / 250 MB/s .. 120 MB/s"}) {
    const auto cost = parse_cost(text);
    ASSERT_TRUE(cost.ok()) << text;
    const auto again = parse_cost(cost_text(*cost));
    ASSERT_TRUE(again.ok()) << cost_text(*cost) << ": " << again.error().message();
    EXPECT_EQ(*again, *cost) << text;
  }
}

TEST(CostTest, ARateThatFallsOverTheDiskCostsMoreFurtherIn) {
  const Cost cost = parse_cost("full / 200 MB/s .. 100 MB/s").value();
  EXPECT_DOUBLE_EQ(cost.transfer_s(1e6, 0, 0), 0.005);
  EXPECT_DOUBLE_EQ(cost.transfer_s(1e6, 0, 0.5), 1.0 / 150);
  EXPECT_DOUBLE_EQ(cost.transfer_s(1e6, 0, 1), 0.010);
  EXPECT_DOUBLE_EQ(parse_cost("full / 100 MB/s .. 100 MB/s")->transfer_s(1e6, 0, 0.5), 0.010);
}

TEST(CostTest, WhatIsWrongIsRefused) {
  for (const char* text : {"",
                           "20",
                           "20 + 3",
                           "full",
                           "full / 20",
                           "full / 20 ms",
                           "full / 4 MB",
                           "(full / 4 MB/s",
                           "full + part / 4 MB/s",
                           "half / 4 MB/s",
                           "uniform 5 ms .. 1 ms",
                           "uniform 5 ms",
                           "seek",
                           "20 ms extra",
                           "2e9 full / 4 MB/s",
                           "3 / 4 MB/s",
                           "full / 4 MB/s ..",
                           "full / 4 MB/s .. 5 MB/s",
                           "full / 4 MB/s .. 3 ms",
                           "full / 4 MB/s .. 3 MB/s .. 2 MB/s"})
    EXPECT_FALSE(parse_cost(text).ok()) << text;
}

TEST(CostTest, ABareNumberIsCalledByItsFault) {
  const auto cost = parse_cost("20");
  ASSERT_FALSE(cost.ok());
  EXPECT_NE(cost.error().where.find("without a unit"), std::string::npos);
}

}  // namespace
}  // namespace mdfs::model
