// Figures are whole SVG documents that hold their data and nothing else.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace mdfs::sim {
namespace {

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(PlotTest, EveryPointIsDrawnAndNotANumberIsLeftOut) {
  Figure figure{.title = "a < b & c", .x_label = "x", .y_label = "y", .series = {}};
  figure.series.push_back({.name = "points",
                           .style = Series::Style::kPoints,
                           .x = {1, 2, 3},
                           .y = {1, std::numeric_limits<double>::quiet_NaN(), 2},
                           .half_width = {},
                           .colour = {}});
  const std::string svg = to_svg(figure);
  EXPECT_EQ(count_of(svg, "<circle"), 3U);  // two points and the legend
  EXPECT_NE(svg.find("a &lt; b &amp; c"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
}

TEST(PlotTest, NothingAtAllIsStillAFigure) {
  const Figure empty{.title = "", .x_label = "", .y_label = "", .series = {}};
  const std::string svg = to_svg(empty);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(PlotTest, ADistributionEndsAtOne) {
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
