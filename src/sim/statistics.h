// Statistics of samples: summaries, confidence intervals, histograms, and straight lines by least squares. Results have
// the unit of the samples. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace mdfs::sim {

struct Summary {
  std::size_t count = 0;
  double mean = 0;
  double deviation = 0;  // of the sample; says nothing about the error of the mean if samples are correlated
  double min = 0;
  double p50 = 0;  // nearest rank
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};
// No samples: all zero.
Summary summarize(std::span<const double> samples);

// mean +- half_width holds the true mean with 95 % probability. Only for independent values: means of replications or
// of batches, or windows read from an idle machine. Fewer than two values: half_width is infinite.
struct Interval {
  double mean = 0;
  double half_width = 0;
};
Interval confidence_interval(std::span<const double> independent);
// The 97.5 % point of Student's t; degrees >= 1.
double student_t(std::size_t degrees);
// Means of `batches` equal consecutive parts (a remainder at the front is left out). Empty if there are too few.
std::vector<double> batch_means(std::span<const double> samples, std::size_t batches);

// Counts by bins of equal width from the smallest sample on.
struct Histogram {
  double low = 0;
  double width = 0;  // of one bin
  std::vector<std::size_t> counts;
};
Histogram histogram(std::span<const double> samples, std::size_t bins);

// y = a + b x by least squares with weights (all 1 if empty). residuals are y - (a + b x).
struct Line {
  double a = 0;
  double b = 0;
  double r_squared = 0;
  std::vector<double> residuals;
};
Line fit_line(std::span<const double> x, std::span<const double> y, std::span<const double> weights = {});

}  // namespace mdfs::sim
