// Figures are whole SVG documents that hold their data and nothing else.
// SPDX-License-Identifier: Apache-2.0
#include "support/chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace mdfs::tools {
namespace {

using sim::Figure;
using sim::Series;

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(ChartTest, EveryPointIsDrawnAndNotANumberIsLeftOut) {
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

TEST(ChartTest, PointsThatDifferByRoundingHaveAnAxis) {
  for (const double x : {1.0, 0.1, 5e8, -3.0}) {
    Figure figure{.title = "", .x_label = "", .y_label = "", .series = {}};
    const double next = std::nextafter(x, 1e9);
    figure.series.push_back(
        {.name = "", .style = Series::Style::kPoints, .x = {x, next}, .y = {1, 2}, .half_width = {}, .colour = {}});
    const std::string svg = to_svg(figure);
    EXPECT_EQ(count_of(svg, "<circle"), 2U);
    EXPECT_LT(svg.size(), 10000U);
  }
}

TEST(ChartTest, NothingAtAllIsStillAFigure) {
  const Figure empty{.title = "", .x_label = "", .y_label = "", .series = {}};
  const std::string svg = to_svg(empty);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace mdfs::tools
