// The contents of a figure: lines, points, areas and bars over two axes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace mdfs::sim {

// Samples in one style, over the axes of a figure.
struct Series {
  enum class Style { kLine, kPoints, kDashed, kArea, kBars };
  std::string name;  // in the legend; empty: none
  Style style = Style::kLine;
  std::vector<double> x;
  std::vector<double> y;             // as many
  std::vector<double> half_width{};  // error bars, as many or none
  std::optional<unsigned> colour{};  // of the palette; absent: the next one
};

struct Figure {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
  std::vector<std::string> x_names{};  // of bars at 0, 1, 2 ..; empty: numbers
  std::optional<double> x_max{};
  std::optional<double> y_max{};  // larger values are cut off
};

// The distribution of samples (area, scaled to the height) and their cumulative distribution, in ms.
void add_distribution(Figure& figure, const std::string& name, const std::vector<double>& samples_s, unsigned colour);

}  // namespace mdfs::sim
