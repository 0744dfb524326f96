// The fit, its verdict, and the machine file.
// SPDX-License-Identifier: Apache-2.0
#include "sim/calibration.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "sim/statistics.h"

namespace mdfs::sim {

namespace {

// A line through the origin, likewise; R^2 is that about the weighted mean.
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

Result<Calibration> calibrate(std::span<const TimedRead> reads) {
  std::map<double, std::vector<double>> by_size;
  for (const TimedRead& read : reads) by_size[read.bytes].push_back(read.seconds);
  if (by_size.size() < 3)
    return Error{Errc::kInvalidArgument, fmt::format("{} sizes: a line and its error need three", by_size.size())};
  std::vector<double> bytes;
  std::vector<double> means;
  std::vector<double> weights;
  Calibration result;
  for (const auto& [size, seconds] : by_size) {
    const Interval interval = confidence_interval(seconds);
    if (!(interval.mean > 0)) return Error{Errc::kInvalidArgument, fmt::format("reads of {} bytes took no time", size)};
    bytes.push_back(size);
    means.push_back(interval.mean);
    weights.push_back(1 / (interval.mean * interval.mean));
    result.rows.push_back(
        {.bytes = size, .reads = seconds.size(), .mean_s = interval.mean, .half_width_s = interval.half_width});
  }
  Line line = fit_line(bytes, means, weights);
  // A disk that is nothing but a rate: randomness alone decides on which side of zero the latency comes out.
  if (line.a < 0) line = fit_rate(bytes, means, weights);
  result.latency_s = line.a;
  result.bytes_per_s = line.b > 0 ? 1 / line.b : 0;
  result.r_squared = line.r_squared;
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    result.rows[i].fitted_s = line.a + line.b * bytes[i];
    result.rows[i].relative_residual = line.residuals[i] / means[i];
  }
  return result;
}

Status judge(const Calibration& calibration) {
  if (calibration.bytes_per_s <= 0) return Error{Errc::kOutOfRange, "larger reads take no longer"};
  if (calibration.r_squared < kLeastRSquared)
    return Error{Errc::kOutOfRange,
                 fmt::format("R^2 is {:.3f}, below {}: no straight line", calibration.r_squared, kLeastRSquared)};
  for (const Calibration::Row& row : calibration.rows)
    if (std::fabs(row.relative_residual) > kLargestResidual)
      return Error{Errc::kOutOfRange, fmt::format("reads of {:.0f} bytes are {:.0f} % off the line, more than {:.0f} %",
                                                  row.bytes, row.relative_residual * 100, kLargestResidual * 100)};
  return {};
}

std::string machine_text(const Calibration& calibration, const std::string& name, const std::string& origin,
                         unsigned disks) {
  std::string text = fmt::format(
      "# Calibrated from {}: R^2 {:.4f}.\nname = \"{}\"\ndescription = \"Calibrated\"\ndisks = {}\n\n"
      "[[resource]]\nname = \"disk\"\ncount = \"disks\"\n\n[[stage]]\nname = \"read\"\nresource = \"disk\"\n",
      origin, calibration.r_squared, name, disks);
  text += fmt::format("cost = [\"seek {:.6g} ms\", \"full / {:.6g} MB/s\"]\n", calibration.latency_s * 1e3,
                      calibration.bytes_per_s / 1e6);
  return text;
}

}  // namespace mdfs::sim
