// Series that are made of samples.
// SPDX-License-Identifier: Apache-2.0
#include "sim/figure.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mdfs::sim {
namespace {

TEST(FigureTest, ADistributionEndsAtOne) {
  Figure figure{.title = "", .x_label = "", .y_label = "", .series = {}};
  add_distribution(figure, "d", {0.003, 0.001, 0.002, 0.002}, 0);
  ASSERT_EQ(figure.series.size(), 2U);
  EXPECT_EQ(figure.series[1].y.back(), 1);
  EXPECT_DOUBLE_EQ(figure.series[1].x.back(), 3);
  EXPECT_TRUE(std::is_sorted(figure.series[1].x.begin(), figure.series[1].x.end()));
  EXPECT_EQ(*std::max_element(figure.series[0].y.begin(), figure.series[0].y.end()), 1);
}

}  // namespace
}  // namespace mdfs::sim
