// The fit, its verdict, and the machine file.
// SPDX-License-Identifier: Apache-2.0
#include "sim/calibration.h"

#include <fmt/format.h>

#include <cmath>

namespace mdfs::sim {
namespace {

using Kind = LatencyDistribution::Kind;

double mean_latency(std::span<const TimedRead> reads, const LatencyDistribution& latency) {
  double sum = 0;
  for (const TimedRead& read : reads) sum += latency.mean_s(read.distance_bytes);
  return sum / static_cast<double>(reads.size());
}

std::string head_text(const LatencyDistribution& latency) {
  if (latency.kind != Kind::kHead) return "";
  return fmt::format(
      "head = {{ track = \"{:.6g} ms\", stroke = \"{:.6g} ms\", rotation = \"{:.6g} ms\", capacity = \"{:.0f} B\" }}\n",
      latency.low_s * 1e3, latency.high_s * 1e3, latency.rotation_s * 1e3, latency.capacity_bytes);
}

std::string held_out_text(const Calibration& calibration) {
  if (calibration.held_out.reads == 0) return "The reads were too few to hold any out.";
  return fmt::format("{} held-out {}: median {:+.1f} %, p95 {:+.1f} %{}.", calibration.held_out.reads,
                     calibration.means_only ? "batches" : "reads", calibration.held_out.median_error * 100,
                     calibration.held_out.p95_error * 100,
                     describes(calibration.held_out) ? "" : ", so no distribution describes this disk");
}

}  // namespace

Result<Calibration> calibrate(std::span<const TimedRead> reads, double capacity_bytes, bool means_only) {
  const std::vector<SizeMean> means = means_by_size(reads);
  if (means.size() < 3)
    return Error{Errc::kInvalidArgument, fmt::format("{} sizes: a line and its error need three", means.size())};
  for (const SizeMean& one : means)
    if (!(one.mean_s > 0))
      return Error{Errc::kInvalidArgument, fmt::format("reads of {} bytes took no time", one.bytes)};
  Calibration result;
  result.means_only = means_only;
  result.r_squared = fit_means(means).r_squared;
  result.candidates = fit_latencies(reads, capacity_bytes, means_only);
  result.model = result.candidates.front().model;
  result.held_out = result.candidates.front().held_out;
  result.latency_s = mean_latency(reads, result.model.latency);
  result.bytes_per_s = result.model.seconds_per_byte > 0 ? 1 / result.model.seconds_per_byte : 0;
  for (const SizeMean& one : means) {
    const double fitted = result.latency_s + one.bytes * result.model.seconds_per_byte;
    result.rows.push_back(
        {.measured = one, .fitted_s = fitted, .relative_residual = (one.mean_s - fitted) / one.mean_s});
  }
  return result;
}

Status judge(const Calibration& calibration) {
  if (calibration.bytes_per_s <= 0) return Error{Errc::kNotSupported, "larger reads take no longer"};
  const bool random = calibration.model.latency.kind != Kind::kConstant && describes(calibration.held_out);
  if (calibration.r_squared < kLeastRSquared && !random)
    return Error{Errc::kNotSupported,
                 fmt::format("R^2 is {:.3f}, below {}: no straight line", calibration.r_squared, kLeastRSquared)};
  for (const Calibration::Row& row : calibration.rows)
    if (std::fabs(row.relative_residual) > kLargestResidual)
      return Error{Errc::kNotSupported,
                   fmt::format("reads of {:.0f} bytes are {:.0f} % off the line, more than {:.0f} %",
                               row.measured.bytes, row.relative_residual * 100, kLargestResidual * 100)};
  return {};
}

std::string machine_text(const Calibration& calibration, const std::string& name, const std::string& origin,
                         unsigned disks) {
  const LatencyDistribution& latency = calibration.model.latency;
  std::string text = fmt::format("# Calibrated from {}: R^2 {:.4f}.\n# Latency: {}. {}\n", origin,
                                 calibration.r_squared, kind_text(latency.kind), held_out_text(calibration));
  text += fmt::format(
      "name = \"{}\"\ndescription = \"Calibrated\"\ndisks = {}\n\n"
      "[[resource]]\nname = \"disk\"\ncount = \"disks\"\n{}\n[[stage]]\nname = \"read\"\nresource = \"disk\"\n",
      name, disks, head_text(latency));
  text += fmt::format("cost = [{}, \"full / {:.6g} MB/s\"]\n", latency.costs_text(), calibration.bytes_per_s / 1e6);
  return text;
}

}  // namespace mdfs::sim
