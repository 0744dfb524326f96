// Summaries, intervals, fits and reference formulas.
// SPDX-License-Identifier: Apache-2.0
#include "sim/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace mdfs::sim {
namespace {

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation_of(std::span<const double> values, double mean) {
  if (values.size() < 2) return 0;
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double nearest_rank(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace

Summary summarize(std::span<const double> samples) {
  Summary summary;
  summary.count = samples.size();
  if (samples.empty()) return summary;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  summary.mean = mean_of(samples);
  summary.deviation = deviation_of(samples, summary.mean);
  summary.min = sorted.front();
  summary.p50 = nearest_rank(sorted, 0.50);
  summary.p95 = nearest_rank(sorted, 0.95);
  summary.p99 = nearest_rank(sorted, 0.99);
  summary.max = sorted.back();
  return summary;
}

double student_t(std::size_t degrees) {
  MDFS_CHECK(degrees >= 1);
  static constexpr std::array kTable = {12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912,
                                        2.364624,  2.306004, 2.262157, 2.228139, 2.200985, 2.178813};
  if (degrees <= kTable.size()) return kTable[degrees - 1];
  // Expansion around the normal distribution (Abramowitz and Stegun 26.7.5); better than 2e-5 from 13 degrees on.
  constexpr double kZ = 1.959963985;
  const double n = static_cast<double>(degrees);
  const double z3 = kZ * kZ * kZ;
  const double z5 = z3 * kZ * kZ;
  const double z7 = z5 * kZ * kZ;
  return kZ + (z3 + kZ) / (4 * n) + (5 * z5 + 16 * z3 + 3 * kZ) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * kZ) / (384 * n * n * n);
}

Interval confidence_interval(std::span<const double> independent) {
  if (independent.empty()) return {0, std::numeric_limits<double>::infinity()};
  const double mean = mean_of(independent);
  if (independent.size() < 2) return {mean, std::numeric_limits<double>::infinity()};
  const double error = deviation_of(independent, mean) / std::sqrt(static_cast<double>(independent.size()));
  return {mean, student_t(independent.size() - 1) * error};
}

std::vector<double> batch_means(std::span<const double> samples, std::size_t batches) {
  if (batches == 0 || samples.size() < batches) return {};
  const std::size_t length = samples.size() / batches;
  const auto used = samples.subspan(samples.size() - length * batches);
  std::vector<double> means;
  for (std::size_t i = 0; i < batches; ++i) means.push_back(mean_of(used.subspan(i * length, length)));
  return means;
}

Histogram histogram(std::span<const double> samples, std::size_t bins) {
  MDFS_CHECK(bins >= 1);
  Histogram result{.low = 0, .width = 0, .counts = std::vector<std::size_t>(bins)};
  if (samples.empty()) return result;
  const auto [low, high] = std::minmax_element(samples.begin(), samples.end());
  result.low = *low;
  result.width = (*high - *low) / static_cast<double>(bins);
  for (const double sample : samples) {
    const double place = result.width > 0 ? (sample - result.low) / result.width : 0;
    ++result.counts[std::min(static_cast<std::size_t>(place), bins - 1)];
  }
  return result;
}

Line fit_line(std::span<const double> x, std::span<const double> y, std::span<const double> weights) {
  MDFS_CHECK(x.size() == y.size() && x.size() >= 2 && (weights.empty() || weights.size() == x.size()));
  const auto weight = [&](std::size_t i) { return weights.empty() ? 1.0 : weights[i]; };
  double sum = 0;
  double mean_x = 0;
  double mean_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += weight(i);
    mean_x += weight(i) * x[i];
    mean_y += weight(i) * y[i];
  }
  mean_x /= sum;
  mean_y /= sum;
  double xx = 0;
  double xy = 0;
  double yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += weight(i) * (x[i] - mean_x) * (x[i] - mean_x);
    xy += weight(i) * (x[i] - mean_x) * (y[i] - mean_y);
    yy += weight(i) * (y[i] - mean_y) * (y[i] - mean_y);
  }
  Line line;
  line.b = xx > 0 ? xy / xx : 0;
  line.a = mean_y - line.b * mean_x;
  double left = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    line.residuals.push_back(y[i] - line.a - line.b * x[i]);
    left += weight(i) * line.residuals[i] * line.residuals[i];
  }
  line.r_squared = yy > 0 ? 1 - left / yy : 0;
  return line;
}

}  // namespace mdfs::sim
