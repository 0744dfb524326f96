// Means by size, and lines by relative error.
// SPDX-License-Identifier: Apache-2.0
#include "sim/timed_read.h"

#include <map>

namespace mdfs::sim {
namespace {

// A line through the origin, by least squares; R^2 is that about the weighted mean.
Line fit_rate(std::span<const double> x, std::span<const double> y, std::span<const double> weights) {
  double xy = 0;
  double xx = 0;
  double weight = 0;
  double mean = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += weights[i] * x[i] * y[i];
    xx += weights[i] * x[i] * x[i];
    weight += weights[i];
    mean += weights[i] * y[i];
  }
  mean /= weight;
  Line line{.a = 0, .b = xy / xx, .r_squared = 0, .residuals = {}};
  double left = 0;
  double all = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    line.residuals.push_back(y[i] - line.b * x[i]);
    left += weights[i] * line.residuals[i] * line.residuals[i];
    all += weights[i] * (y[i] - mean) * (y[i] - mean);
  }
  line.r_squared = all > 0 ? 1 - left / all : 0;
  return line;
}

}  // namespace

std::vector<SizeMean> means_by_size(std::span<const TimedRead> reads) {
  std::map<double, std::vector<double>> by_size;
  for (const TimedRead& read : reads) by_size[read.bytes].push_back(read.seconds);
  std::vector<SizeMean> means;
  for (const auto& [bytes, seconds] : by_size) {
    const Interval interval = confidence_interval(seconds);
    means.push_back(
        {.bytes = bytes, .reads = seconds.size(), .mean_s = interval.mean, .half_width_s = interval.half_width});
  }
  return means;
}

Line fit_means(std::span<const SizeMean> means) {
  std::vector<double> bytes;
  std::vector<double> seconds;
  std::vector<double> weights;
  for (const SizeMean& one : means) {
    bytes.push_back(one.bytes);
    seconds.push_back(one.mean_s);
    weights.push_back(1 / (one.mean_s * one.mean_s));
  }
  const Line line = fit_line(bytes, seconds, weights);
  // A disk that is nothing but a rate: randomness alone decides on which side of zero the latency comes out.
  return line.a < 0 ? fit_rate(bytes, seconds, weights) : line;
}

}  // namespace mdfs::sim
