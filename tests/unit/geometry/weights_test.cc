// Weights: small, whole, and in the ratio that was measured.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/weights.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace mdfs::geometry {
namespace {

using Weights = std::vector<unsigned>;

Weights weights_of(std::vector<double> figures) { return *whole_weights(figures); }

TEST(WeightsTest, TheRatioOfTheFiguresBecomesSmallWholeNumbers) {
  EXPECT_EQ(weights_of({200e6, 200e6, 100e6, 100e6}), (Weights{2, 2, 1, 1}));
  EXPECT_EQ(weights_of({4e12, 6e12}), (Weights{2, 3}));
  EXPECT_EQ(weights_of({401, 399, 301, 299, 200, 199}), weights_of({4, 4, 3, 3, 2, 2}));
  EXPECT_EQ(weights_of({400, 300, 200}), (Weights{4, 3, 2}));
  EXPECT_EQ(weights_of({7}), (Weights{1}));
}

TEST(WeightsTest, NoiseOfAShortMeasurementMakesNoDifference) {
  EXPECT_EQ(weights_of({100, 109, 96, 104}), (Weights{1, 1, 1, 1}));
  EXPECT_EQ(weights_of({205, 196, 101, 99}), (Weights{2, 2, 1, 1}));
}

TEST(WeightsTest, ADiskCountsAtMostSixteenTimesTheLeast) { EXPECT_EQ(weights_of({7000, 100}), (Weights{16, 1})); }

TEST(WeightsTest, NothingAndWhatIsNotPositiveIsRefused) {
  EXPECT_FALSE(whole_weights(std::vector<double>{}).ok());
  EXPECT_FALSE(whole_weights(std::vector<double>{1, 0}).ok());
  EXPECT_FALSE(whole_weights(std::vector<double>{1, -3}).ok());
  EXPECT_FALSE(whole_weights(std::vector<double>{1, 1.0 / 0.0}).ok());
}

RC_GTEST_PROP(WeightsTest, NoFigureIsMisjudgedByMoreThanAQuarter, ()) {
  const auto figures = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(100, 1600)));
  const std::vector<double> exact(figures.begin(), figures.end());
  const Weights weights = weights_of(exact);
  const double least = *std::min_element(exact.begin(), exact.end());
  double scale = 0;
  for (std::size_t i = 0; i < exact.size(); ++i)
    if (exact[i] == least) scale = weights[i];
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double ratio = weights[i] / (scale * exact[i] / least);
    RC_ASSERT((ratio > 0.75 && ratio < 1.3));
  }
}

TEST(WeightsTest, AListIsReadAndCounted) {
  EXPECT_EQ(*parse_weights("2,2,1", 3), (Weights{2, 2, 1}));
  EXPECT_EQ(*parse_weights("256", 1), (Weights{256}));
  for (const char* text : {"", "2,2", "2,2,1,1", "0,1,1", "257,1,1", "-1,1,1", "2;2;1", "2,,1", "1,1,x"})
    EXPECT_FALSE(parse_weights(text, 3).ok()) << text;
}

}  // namespace
}  // namespace mdfs::geometry
