// Judging loads by targets, and trying machines in order of price.
// SPDX-License-Identifier: Apache-2.0
#include "sim/sizing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <tuple>
#include <utility>

#include "model/quantity.h"

namespace mdfs::sim {
namespace {

constexpr std::array<std::pair<std::string_view, Bound::Figure>, 6> kFigures = {{
    {"mean", Bound::Figure::kMean},
    {"p50", Bound::Figure::kP50},
    {"p95", Bound::Figure::kP95},
    {"p99", Bound::Figure::kP99},
    {"max", Bound::Figure::kMax},
    {"throughput", Bound::Figure::kThroughput},
}};
constexpr std::string_view kForms =
    "a target is mean, p50, p95, p99 or max below a time (\"p99<50ms\"), or throughput above a rate "
    "(\"throughput>200MB/s\")";

std::string_view trimmed(std::string_view text) {
  model::skip_blanks(text);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

double figure_of(const Summary& summary, Bound::Figure figure) {
  switch (figure) {
    case Bound::Figure::kMean:
      return summary.mean;
    case Bound::Figure::kP50:
      return summary.p50;
    case Bound::Figure::kP95:
      return summary.p95;
    case Bound::Figure::kP99:
      return summary.p99;
    case Bound::Figure::kMax:
      return summary.max;
    case Bound::Figure::kThroughput:
      break;
  }
  return 0;
}

Verdict judge(const Interval& value, const Bound& target) {
  const bool below = target.figure != Bound::Figure::kThroughput;
  const double low = value.mean - value.half_width, high = value.mean + value.half_width;
  if (below ? high < target.limit : low > target.limit) return Verdict::kMet;
  if (below ? low >= target.limit : high <= target.limit) return Verdict::kMissed;
  return Verdict::kUnsure;
}

Verdict worst(Verdict a, Verdict b) {
  if (a == Verdict::kMissed || b == Verdict::kMissed) return Verdict::kMissed;
  return a == Verdict::kUnsure ? a : b;
}

// The collected of all replications so far.
struct Collected {
  std::vector<std::vector<double>> of_target;
  std::vector<double> throughput;
  std::vector<ResourceUse> use;  // of the first replications
};

void add(Collected& collected, const LoadResult& load, unsigned replications, std::span<const Bound> targets) {
  const std::size_t each = load.delays_s.size() / replications;
  for (unsigned run = 0; run < replications; ++run) {
    const Summary summary = summarize(std::span(load.delays_s).subspan(run * each, each));
    for (std::size_t i = 0; i < targets.size(); ++i)
      collected.of_target[i].push_back(targets[i].figure == Bound::Figure::kThroughput
                                           ? load.replication_throughput[run]
                                           : figure_of(summary, targets[i].figure));
    collected.throughput.push_back(load.replication_throughput[run]);
  }
  if (collected.use.empty()) collected.use = load.use;
}

}  // namespace

Result<Bound> parse_bound(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return Error{Errc::kInvalidArgument, fmt::format("\"{}\": {}", text, why)};
  };
  const std::size_t at = text.find_first_of("<>");
  if (at == std::string_view::npos) return bad(kForms);
  const std::string_view name = trimmed(text.substr(0, at));
  const auto* const row =
      std::find_if(kFigures.begin(), kFigures.end(), [&](const auto& one) { return one.first == name; });
  if (row == kFigures.end()) return bad(kForms);
  Bound target{.figure = row->second, .limit = 0, .text = std::string(text)};
  const bool rate = target.figure == Bound::Figure::kThroughput;
  if ((text[at] == '>') != rate) return bad(kForms);
  const std::string_view value = trimmed(text.substr(at + 1));
  const auto limit = rate ? model::parse_rate_bytes_per_s(value) : model::parse_time_s(value);
  if (!limit.ok()) return bad(limit.error().where);
  if (*limit <= 0) return bad("the limit must be more than 0");
  target.limit = *limit;
  return target;
}

std::string_view name_of(Bound::Figure figure) {
  for (const auto& [name, known] : kFigures)
    if (known == figure) return name;
  return {};
}

std::string_view name_of(Verdict verdict) {
  return verdict == Verdict::kMet ? "met" : verdict == Verdict::kMissed ? "missed" : "unsure";
}

Measured measure_targets(const RunLoad& run, bool random, std::span<const Bound> targets, std::uint64_t seed) {
  Collected collected;
  collected.of_target.resize(targets.size());
  Measured measured;
  unsigned next = random ? kFirstReplications : 1;
  for (;;) {
    add(collected, run(seed + measured.replications, next), next, targets);
    measured.replications += next;
    measured.targets.clear();
    measured.verdict = Verdict::kMet;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      BoundResult result;
      result.value = random ? confidence_interval(collected.of_target[i]) : Interval{collected.of_target[i].front(), 0};
      result.verdict = judge(result.value, targets[i]);
      measured.verdict = worst(measured.verdict, result.verdict);
      measured.targets.push_back(result);
    }
    if (!random || measured.verdict != Verdict::kUnsure || measured.replications >= kMostReplications) break;
    next = measured.replications;
  }
  for (const double one : collected.throughput)
    measured.done_bytes_per_s += one / static_cast<double>(collected.throughput.size());
  measured.use = std::move(collected.use);
  return measured;
}

void sort_by_price(std::vector<Candidate>& candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.price, a.disks, a.machine) < std::tie(b.price, b.disks, b.machine);
  });
}

std::vector<Sized> find_cheapest(std::span<const Candidate> candidates, const MeasureCandidate& measure,
                                 unsigned threads, bool all, const std::function<void()>& measured) {
  std::vector<Sized> sized(candidates.size());
  std::atomic<std::size_t> next{0}, end{candidates.size()};  // those from `end` on are dearer than one that is met
  const auto work = [&] {
    for (std::size_t i = next++; i < end; i = next++) {
      sized[i].candidate = candidates[i];
      auto result = measure(candidates[i]);
      if (!result.ok()) {
        sized[i].problem = result.error().where;
      } else {
        const bool met = result->verdict == Verdict::kMet;
        sized[i].measured = std::move(*result);
        for (std::size_t last = end; met && !all && i + 1 < last && !end.compare_exchange_weak(last, i + 1);) {
        }
      }
      if (measured) measured();
    }
  };
  std::vector<std::thread> pool;
  for (unsigned i = 1; i < threads; ++i) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
  sized.resize(end);
  return sized;
}

}  // namespace mdfs::sim
