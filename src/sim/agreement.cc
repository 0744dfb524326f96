// Paired differences for the mean, a bootstrap for quantiles.
// SPDX-License-Identifier: Apache-2.0
#include "sim/agreement.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "model/random.h"

namespace mdfs::sim {
namespace {

constexpr double kResampledDelays = 2e7;
constexpr double kFewestSamples = 20;
constexpr double kMostSamplesDrawn = 400;
constexpr double kNormal975 = 1.959964;

double nearest_rank_of(std::vector<double>& values, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::clamp<std::size_t>(rank, 1, values.size()) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// At this share, of the windows with these numbers.
Agreement at_share(const ComparedDelays& delays, std::span<const std::size_t> windows, double share) {
  std::vector<double> measured;
  std::vector<double> simulated;
  for (const std::size_t window : windows) {
    measured.push_back(delays.measured_s[window]);
    for (const std::vector<double>& run : delays.simulated_s) simulated.push_back(run[window]);
  }
  Agreement result;
  result.measured_s = nearest_rank_of(measured, share);
  result.simulated_s = nearest_rank_of(simulated, share);
  result.ratio.mean = result.measured_s / result.simulated_s;
  return result;
}

}  // namespace

std::string_view within_text(Within within) {
  static constexpr std::array<std::string_view, 3> kTexts = {"yes", "unsure", "no"};
  return kTexts.at(static_cast<std::size_t>(within));
}

Within worst_of(std::span<const Within> all) { return *std::max_element(all.begin(), all.end()); }

Within Agreement::verdict(double tolerance) const {
  const double gap = std::fabs(ratio.mean - 1);
  if (gap <= tolerance) return Within::kYes;
  return gap - ratio.half_width <= tolerance ? Within::kUnsure : Within::kNo;
}

Agreement mean_agreement(const ComparedDelays& delays) {
  const std::size_t windows = delays.measured_s.size();
  MDFS_CHECK(windows >= 2 && !delays.simulated_s.empty());
  const auto runs = static_cast<double>(delays.simulated_s.size());
  Agreement result;
  std::vector<double> differences(delays.measured_s);
  for (const std::vector<double>& run : delays.simulated_s)
    for (std::size_t i = 0; i < windows; ++i) {
      differences[i] -= run[i] / runs;
      result.simulated_s += run[i] / runs / static_cast<double>(windows);
    }
  const Interval interval = confidence_interval(differences);
  result.measured_s = result.simulated_s + interval.mean;
  result.ratio = {1 + interval.mean / result.simulated_s, interval.half_width / result.simulated_s};
  return result;
}

Agreement agreement_at(const ComparedDelays& delays, double share, std::uint64_t seed) {
  const std::size_t count = delays.measured_s.size();
  MDFS_CHECK(count >= 2 && !delays.simulated_s.empty());
  std::vector<std::size_t> windows(count);
  for (std::size_t i = 0; i < count; ++i) windows[i] = i;
  Agreement result = at_share(delays, windows, share);
  const double one = static_cast<double>(count * (delays.simulated_s.size() + 1));
  const auto samples = static_cast<unsigned>(std::clamp(kResampledDelays / one, kFewestSamples, kMostSamplesDrawn));
  model::Random random(seed);
  std::vector<double> ratios;
  for (unsigned sample = 0; sample < samples; ++sample) {
    for (std::size_t& window : windows) window = random.below(count);
    ratios.push_back(at_share(delays, windows, share).ratio.mean);
  }
  result.ratio.half_width = kNormal975 * summarize(ratios).deviation;
  return result;
}

}  // namespace mdfs::sim
