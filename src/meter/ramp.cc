// Decisions of the ramp.
// SPDX-License-Identifier: Apache-2.0
#include "meter/ramp.h"

#include <fmt/format.h>

#include <algorithm>

namespace mdfs::meter {
namespace {

// The fewest clients that break a limit.
std::optional<unsigned> least_broken(std::span<const Tried> tried) {
  std::optional<unsigned> least;
  for (const Tried& one : tried)
    if (!one.holds) least = std::min(least.value_or(one.clients), one.clients);
  return least;
}

}  // namespace

std::string clients_text(unsigned clients) { return fmt::format("{} client{}", clients, clients == 1 ? "" : "s"); }

std::string broken_limit(const Limits& limits, const Step& step, const Step* fewer) {
  const Tally& tally = step.tally;
  if (limits.late && tally.late_share() > *limits.late)
    return fmt::format("late: {} of {} transfers, above {:g} %", tally.late, tally.due, 100 * *limits.late);
  if (limits.p99_s) {
    const double p99_s = tally.all_totals().percentile_s(0.99);
    if (p99_s > *limits.p99_s) return fmt::format("p99: {:.4g} ms, above {:g} ms", p99_s * 1e3, *limits.p99_s * 1e3);
  }
  if (limits.gain && fewer != nullptr && step.rate() < fewer->rate() * (1 + *limits.gain))
    return fmt::format("gain: {:+.1f} % over {}, below {:g} %",
                       fewer->rate() > 0 ? 100 * (step.rate() / fewer->rate() - 1) : 0.0, clients_text(fewer->clients),
                       100 * *limits.gain);
  return {};
}

unsigned most_held(std::span<const Tried> tried) {
  const std::optional<unsigned> broken = least_broken(tried);
  unsigned most = 0;
  for (const Tried& one : tried)
    if (one.holds && (!broken || one.clients < *broken)) most = std::max(most, one.clients);
  return most;
}

std::optional<unsigned> next_clients(std::span<const Tried> tried, unsigned most) {
  const unsigned held = most_held(tried);
  const std::optional<unsigned> broken = least_broken(tried);
  if (!broken) {
    if (held >= most) return std::nullopt;
    return std::min(most, std::max(1U, 2 * held));
  }
  if (*broken <= held + 1) return std::nullopt;
  return held + (*broken - held) / 2;
}

}  // namespace mdfs::meter
