// Weights of unequal disks.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace mdfs::geometry {
namespace {

constexpr double kMaxRatio = 16;
constexpr unsigned kMaxLeast = 4;

struct Attempt {
  std::vector<unsigned> weights;
  double error = 0;  // of the worst, relative
};

Attempt round_to(std::span<const double> ratios, unsigned least) {
  Attempt attempt;
  for (const double ratio : ratios) {
    const double exact = ratio * least;
    const double rounded = std::max(1.0, std::round(exact));
    attempt.weights.push_back(static_cast<unsigned>(rounded));
    attempt.error = std::max(attempt.error, std::abs(rounded / exact - 1));
  }
  return attempt;
}

}  // namespace

Result<std::vector<unsigned>> whole_weights(std::span<const double> figures) {
  if (figures.empty()) return Error{Errc::kInvalidArgument, "no disks to weigh"};
  for (const double figure : figures)
    if (!std::isfinite(figure) || figure <= 0)
      return Error{Errc::kInvalidArgument, fmt::format("a disk whose figure is {}", figure)};
  const double least = *std::min_element(figures.begin(), figures.end());
  std::vector<double> ratios;
  for (const double figure : figures) ratios.push_back(std::min(figure / least, kMaxRatio));
  Attempt best = round_to(ratios, 1);
  for (unsigned i = 2; i <= kMaxLeast && best.error > kWeightTolerance; ++i) {
    Attempt attempt = round_to(ratios, i);
    if (attempt.error < best.error) best = std::move(attempt);
  }
  return std::move(best.weights);
}

Result<std::vector<unsigned>> parse_weights(std::string_view text, std::size_t disks) {
  std::vector<unsigned> weights;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const auto number = parse_number(part, "weight");
    if (!number.ok() || *number < 1 || *number > kMaxWeight)
      return Error{Errc::kUsage, fmt::format("weight '{}': must be 1..{}", part, kMaxWeight)};
    weights.push_back(static_cast<unsigned>(*number));
    begin = end + 1;
  }
  if (weights.size() != disks)
    return Error{Errc::kUsage, fmt::format("{} weights for {} disks", weights.size(), disks)};
  return weights;
}

}  // namespace mdfs::geometry
