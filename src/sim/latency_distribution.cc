// Rates by quantile regression, distributions by their quantiles, and the choice by held-out reads.
// SPDX-License-Identifier: Apache-2.0
#include "sim/latency_distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "sim/statistics.h"

namespace mdfs::sim {
namespace {

using Kind = LatencyDistribution::Kind;

constexpr unsigned kFolds = 4;
constexpr double kStandardErrors = 6;
constexpr unsigned kSections = 30;            // which leave 1e-6 of a range
constexpr std::size_t kMostPoints = 20000;    // for the slopes; more change nothing
constexpr std::size_t kModelSamples = 40000;  // of a distribution, in all
constexpr std::size_t kMostSamples = 64;      // for one read
constexpr double kGoldenShare = 0.6180339887498949;

double stroke_share(double distance_bytes, double capacity_bytes) {
  return capacity_bytes > 0 ? std::sqrt(std::clamp(distance_bytes / capacity_bytes, 0.0, 1.0)) : 0;
}

// seconds = offset + per_byte * bytes + per_stroke * stroke
struct Plane {
  double offset = 0;
  double per_byte = 0;
  double per_stroke = 0;
};

struct Point {
  double bytes;
  double stroke;
  double seconds;
};

// Least squares, with the width in which each slope lies for certain; without strokes of different lengths per_stroke
// is 0.
struct Fit {
  Plane plane;
  double byte_width = 0;
  double stroke_width = 0;
};
Fit fit_plane(std::span<const Point> points, bool with_stroke) {
  const double n = static_cast<double>(points.size());
  double bytes = 0, stroke = 0, seconds = 0;
  for (const Point& one : points) {
    bytes += one.bytes / n;
    stroke += one.stroke / n;
    seconds += one.seconds / n;
  }
  double bb = 0, bs = 0, ss = 0, by = 0, sy = 0, yy = 0;
  for (const Point& one : points) {
    const double b = one.bytes - bytes, s = one.stroke - stroke, y = one.seconds - seconds;
    bb += b * b;
    bs += b * s;
    ss += s * s;
    by += b * y;
    sy += s * y;
    yy += y * y;
  }
  Fit fit;
  const double determinant = bb * ss - bs * bs;
  if (with_stroke && determinant > 1e-12 * bb * ss) {
    fit.plane.per_byte = (by * ss - sy * bs) / determinant;
    fit.plane.per_stroke = (sy * bb - by * bs) / determinant;
  } else if (bb > 0) {
    fit.plane.per_byte = by / bb;
  }
  fit.plane.offset = seconds - fit.plane.per_byte * bytes - fit.plane.per_stroke * stroke;
  const double left = std::max(0.0, yy - fit.plane.per_byte * by - fit.plane.per_stroke * sy) / n;
  if (bb > 0) fit.byte_width = kStandardErrors * std::sqrt(left / bb);
  if (fit.plane.per_stroke != 0) fit.stroke_width = kStandardErrors * std::sqrt(left / ss);
  return fit;
}

// Where a convex function is least, by golden sections.
template <typename Function>
double least(double low, double high, const Function& function) {
  double a = high - kGoldenShare * (high - low);
  double b = low + kGoldenShare * (high - low);
  double at_a = function(a);
  double at_b = function(b);
  for (unsigned i = 0; i < kSections; ++i) {
    if (at_a <= at_b) {
      high = std::exchange(b, a);
      at_b = at_a;
      a = high - kGoldenShare * (high - low);
      at_a = function(a);
    } else {
      low = std::exchange(a, b);
      at_a = at_b;
      b = low + kGoldenShare * (high - low);
      at_b = function(b);
    }
  }
  return (low + high) / 2;
}

// The plane below which the fastest 1 - kTrusted of the reads lie (quantile regression: Koenker and Bassett, 1978).
// All distributions here begin abruptly, so their fast end tells the slopes better than their mean, and slow outliers
// do not count. Least squares say where to look.
Plane fit_fast_end(std::vector<Point> points, bool with_stroke) {
  if (points.size() > kMostPoints) {
    const std::size_t step = points.size() / kMostPoints + 1;
    for (std::size_t i = 0; i * step < points.size(); ++i) points[i] = points[i * step];
    points.resize((points.size() + step - 1) / step);
  }
  const Fit around = fit_plane(points, with_stroke);
  std::vector<double> left(points.size());
  Plane plane = around.plane;
  const auto loss = [&](double per_byte, double per_stroke) {
    double mean = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      left[i] = points[i].seconds - per_byte * points[i].bytes - per_stroke * points[i].stroke;
      mean += left[i] / static_cast<double>(left.size());
    }
    const auto rank = static_cast<std::size_t>((1 - kTrusted) * static_cast<double>(left.size()));
    std::nth_element(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(rank), left.end());
    plane.offset = left[rank];
    double below = 0;
    for (std::size_t i = 0; i < rank; ++i) below += (plane.offset - left[i]) / static_cast<double>(left.size());
    return (1 - kTrusted) * (mean - plane.offset) + below;
  };
  const auto best_stroke = [&](double per_byte) {
    const double middle = around.plane.per_stroke;
    if (around.stroke_width == 0) return middle;
    return least(middle - around.stroke_width, middle + around.stroke_width,
                 [&](double per_stroke) { return loss(per_byte, per_stroke); });
  };
  plane.per_byte = least(around.plane.per_byte - around.byte_width, around.plane.per_byte + around.byte_width,
                         [&](double per_byte) { return loss(per_byte, best_stroke(per_byte)); });
  plane.per_stroke = best_stroke(plane.per_byte);
  loss(plane.per_byte, plane.per_stroke);
  return plane;
}

double uniform_shape(double share) { return share; }
double exponential_shape(double share) { return -std::log1p(-share); }

// low + scale * shape(share); low >= 0.
struct Located {
  double low = 0;
  double scale = 0;
};

// From the quantiles at both ends of what is trusted.
Located fit_uniform(const std::vector<double>& sorted, std::size_t first, std::size_t last) {
  const double n = static_cast<double>(sorted.size());
  const double scale = (sorted[last] - sorted[first]) * n / static_cast<double>(last - first);
  const double low = sorted[first] - scale * (static_cast<double>(first) + 0.5) / n;
  if (low >= 0) return {.low = low, .scale = scale};
  return {.low = 0, .scale = sorted[last] * n / (static_cast<double>(last) + 0.5)};
}

// The maximum-likelihood mean where all values beyond `last` are only known to be larger, with the beginning from the
// quantile at `first`.
Located fit_exponential(const std::vector<double>& sorted, std::size_t first, std::size_t last) {
  const double n = static_cast<double>(sorted.size());
  const double known = static_cast<double>(last) + 1;
  double sum = (n - known) * sorted[last];
  for (std::size_t i = 0; i <= last; ++i) sum += sorted[i];
  const double begin = exponential_shape((static_cast<double>(first) + 0.5) / n);
  const double scale = (sum - n * sorted[first]) / (known - n * begin);
  const double low = sorted[first] - scale * begin;
  if (low >= 0) return {.low = low, .scale = scale};
  return {.low = 0, .scale = std::max(0.0, sum / known)};
}

Located fit_quantiles(std::vector<double> values, Kind kind) {
  std::sort(values.begin(), values.end());
  const double n = static_cast<double>(values.size());
  const auto first = static_cast<std::size_t>((1 - kTrusted) * n);
  const auto last = static_cast<std::size_t>(std::ceil(kTrusted * n)) - 1;
  if (first >= last) return {.low = std::max(0.0, values.front()), .scale = 0};
  return kind == Kind::kExponential ? fit_exponential(values, first, last) : fit_uniform(values, first, last);
}

std::optional<ReadModel> fit_kind(std::span<const TimedRead> reads, Kind kind, double capacity) {
  if (kind == Kind::kConstant) {
    const Line line = fit_means(means_by_size(reads));
    return ReadModel{.latency = {.low_s = line.a}, .seconds_per_byte = line.b};
  }
  std::vector<Point> points;
  for (const TimedRead& read : reads)
    points.push_back({read.bytes, stroke_share(read.distance_bytes, capacity), read.seconds});
  const Plane plane = fit_fast_end(points, kind == Kind::kHead);
  if (plane.per_byte <= 0 || (kind == Kind::kHead && plane.per_stroke <= 0)) return std::nullopt;
  std::vector<double> latencies;
  for (const Point& one : points)
    latencies.push_back(one.seconds - plane.per_byte * one.bytes - plane.per_stroke * one.stroke);
  const Located at = fit_quantiles(std::move(latencies), kind);
  ReadModel model;
  model.seconds_per_byte = plane.per_byte;
  model.latency = {.kind = kind, .low_s = at.low, .high_s = at.low + at.scale, .rotation_s = 0, .capacity_bytes = 0};
  if (kind == Kind::kExponential) model.latency.high_s = at.scale;
  if (kind == Kind::kHead) {
    model.latency.high_s = at.low + plane.per_stroke;
    model.latency.rotation_s = at.scale;
    model.latency.capacity_bytes = capacity;
  }
  return model;
}

// Reads in the order of their measurement, and to which fold each one belongs: the sizes are dealt out evenly.
std::vector<unsigned> folds_of(std::span<const TimedRead> reads) {
  std::map<double, unsigned> seen;
  std::vector<unsigned> folds;
  for (const TimedRead& read : reads) folds.push_back(seen[read.bytes]++ % kFolds);
  return folds;
}

HeldOut hold_out(std::span<const TimedRead> reads, Kind kind, double capacity) {
  const std::vector<unsigned> folds = folds_of(reads);
  std::map<double, double> means;
  for (const SizeMean& one : means_by_size(reads)) means[one.bytes] = one.mean_s;
  const std::size_t samples = std::clamp<std::size_t>(kModelSamples / reads.size(), 1, kMostSamples);
  std::vector<double> measured;
  std::vector<double> modelled;
  for (unsigned fold = 0; fold < kFolds; ++fold) {
    std::vector<TimedRead> rest;
    std::set<double> sizes;
    for (std::size_t i = 0; i < reads.size(); ++i)
      if (folds[i] != fold) {
        rest.push_back(reads[i]);
        sizes.insert(reads[i].bytes);
      }
    if (sizes.size() < 3) return {};
    const std::optional<ReadModel> model = fit_kind(rest, kind, capacity);
    if (!model) return {};
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (folds[i] != fold) continue;
      const TimedRead& read = reads[i];
      const double scale = means.at(read.bytes);
      measured.push_back(read.seconds / scale);
      // Shares that spread evenly over all reads, also where there is one sample a read.
      const double turn = std::fmod((static_cast<double>(i) + 0.5) * kGoldenShare, 1.0);
      for (std::size_t j = 0; j < samples; ++j) {
        const double share = (static_cast<double>(j) + turn) / static_cast<double>(samples);
        const double latency = model->latency.quantile_s(share, read.distance_bytes);
        modelled.push_back((latency + read.bytes * model->seconds_per_byte) / scale);
      }
    }
  }
  const Summary real = summarize(measured);
  const Summary ideal = summarize(modelled);
  if (!(ideal.p50 > 0)) return {};
  std::sort(measured.begin(), measured.end());
  std::sort(modelled.begin(), modelled.end());
  HeldOut result{.reads = measured.size(),
                 .distance = 0,
                 .mean_error = real.mean / ideal.mean - 1,
                 .median_error = real.p50 / ideal.p50 - 1,
                 .p95_error = real.p95 / ideal.p95 - 1};
  const auto trusted = static_cast<std::size_t>(std::ceil(kTrusted * static_cast<double>(measured.size())));
  for (std::size_t i = 0; i < trusted; ++i)
    result.distance += std::fabs(measured[i] - modelled[i * samples + samples / 2]) / static_cast<double>(trusted);
  return result;
}

}  // namespace

unsigned LatencyDistribution::parameters() const { return kind == Kind::kConstant ? 1 : kind == Kind::kHead ? 3 : 2; }

double LatencyDistribution::mean_s(double distance_bytes) const {
  switch (kind) {
    case Kind::kConstant:
      return low_s;
    case Kind::kUniform:
      return (low_s + high_s) / 2;
    case Kind::kExponential:
      return low_s + high_s;
    case Kind::kHead:
      return quantile_s(0.5, distance_bytes);
  }
  return 0;
}

double LatencyDistribution::quantile_s(double share, double distance_bytes) const {
  MDFS_CHECK(share >= 0 && share < 1);
  switch (kind) {
    case Kind::kConstant:
      return low_s;
    case Kind::kUniform:
      return low_s + (high_s - low_s) * uniform_shape(share);
    case Kind::kExponential:
      return low_s + high_s * exponential_shape(share);
    case Kind::kHead:
      return low_s + (high_s - low_s) * stroke_share(distance_bytes, capacity_bytes) + rotation_s * share;
  }
  return 0;
}

std::string LatencyDistribution::costs_text() const {
  switch (kind) {
    case Kind::kConstant:
      return fmt::format("\"seek {:.6g} ms\"", low_s * 1e3);
    case Kind::kUniform:
      return fmt::format("\"uniform {:.6g} ms .. {:.6g} ms\"", low_s * 1e3, high_s * 1e3);
    case Kind::kExponential:
      return fmt::format("\"{:.6g} ms\", \"exponential {:.6g} ms\"", low_s * 1e3, high_s * 1e3);
    case Kind::kHead:
      return "\"head\"";
  }
  return {};
}

std::string kind_text(Kind kind) {
  static constexpr std::array<const char*, 4> kNames = {"constant", "uniform", "exponential", "head"};
  return kNames.at(static_cast<std::size_t>(kind));
}

double FittedModel::score() const { return held_out.distance + kWorthOfAParameter * model.latency.parameters(); }

std::vector<FittedModel> fit_latencies(std::span<const TimedRead> reads, double capacity_bytes, bool means_only) {
  std::vector<FittedModel> candidates;
  for (const Kind kind : {Kind::kConstant, Kind::kUniform, Kind::kExponential, Kind::kHead}) {
    if (means_only && kind != Kind::kConstant) continue;
    if (kind == Kind::kHead && capacity_bytes <= 0) continue;
    const std::optional<ReadModel> model = fit_kind(reads, kind, capacity_bytes);
    if (!model) continue;
    const HeldOut held_out = hold_out(reads, kind, capacity_bytes);
    if (held_out.reads == 0 && kind != Kind::kConstant) continue;
    candidates.push_back({*model, held_out});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const FittedModel& a, const FittedModel& b) { return a.score() < b.score(); });
  return candidates;
}

bool describes(const HeldOut& held_out) {
  return held_out.reads > 0 && std::fabs(held_out.median_error) <= kLargestQuantileError &&
         std::fabs(held_out.p95_error) <= kLargestQuantileError;
}

}  // namespace mdfs::sim
