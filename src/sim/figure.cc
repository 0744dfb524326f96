// Series made of samples.
// SPDX-License-Identifier: Apache-2.0
#include "sim/figure.h"

#include <algorithm>

#include "sim/statistics.h"

namespace mdfs::sim {
namespace {

constexpr std::size_t kBins = 60;
constexpr std::size_t kMaxCurvePoints = 400;

}  // namespace

void add_distribution(Figure& figure, const std::string& name, const std::vector<double>& samples_s, unsigned colour) {
  if (samples_s.empty()) return;
  std::vector<double> sorted(samples_s);
  std::sort(sorted.begin(), sorted.end());
  const Histogram bins = histogram(sorted, kBins);
  Series density{.name = "", .style = Series::Style::kArea, .x = {}, .y = {}, .half_width = {}, .colour = colour};
  const double most = static_cast<double>(*std::max_element(bins.counts.begin(), bins.counts.end()));
  const double width_ms = bins.width * 1e3;
  if (width_ms > 0)
    for (std::size_t i = 0; i < bins.counts.size(); ++i)
      for (const double edge : {0.0, 1.0}) {
        density.x.push_back(bins.low * 1e3 + (static_cast<double>(i) + edge) * width_ms);
        density.y.push_back(static_cast<double>(bins.counts[i]) / most);
      }
  Series cumulative{.name = name, .style = Series::Style::kLine, .x = {}, .y = {}, .half_width = {}, .colour = colour};
  const std::size_t points = std::min(kMaxCurvePoints, sorted.size());
  cumulative.x.push_back(sorted.front() * 1e3);
  cumulative.y.push_back(0);
  for (std::size_t i = 1; i <= points; ++i) {
    const std::size_t rank = i * sorted.size() / points;
    cumulative.x.push_back(sorted[rank - 1] * 1e3);
    cumulative.y.push_back(static_cast<double>(rank) / static_cast<double>(sorted.size()));
  }
  figure.series.push_back(std::move(density));
  figure.series.push_back(std::move(cumulative));
  figure.y_max = 1;
}

}  // namespace mdfs::sim
