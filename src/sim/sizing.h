// Which machine, with how many disks, meets targets at the lowest price.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/experiment.h"
#include "sim/statistics.h"

namespace mdfs::sim {

// A target: a bound on a figure of a load, "p99<50ms", "mean < 1 s", "throughput>200MB/s" (bytes of windows).
struct Bound {
  enum class Figure { kMean, kP50, kP95, kP99, kMax, kThroughput };
  Figure figure = Figure::kP99;
  double limit = 0;  // s, or bytes/s: largest delay, smallest throughput
  std::string text;  // as it was written
};
// kInvalidArgument: the text is none, and says which there are.
Result<Bound> parse_bound(std::string_view text);
std::string_view name_of(Bound::Figure figure);

enum class Verdict { kMet, kMissed, kUnsure };  // unsure: the limit lies within the error bar
std::string_view name_of(Verdict verdict);

struct BoundResult {
  Interval value;  // over replications; half_width 0 where the load has no randomness
  Verdict verdict = Verdict::kUnsure;
};

// One machine with one number of disks under the load.
struct Measured {
  std::vector<BoundResult> targets;    // in the order of the targets
  Verdict verdict = Verdict::kUnsure;  // the worst of them
  unsigned replications = 0;
  double done_bytes_per_s = 0;
  std::vector<ResourceUse> use;  // mean over replications
};

// Runs the load with this seed so many times.
using RunLoad = std::function<LoadResult(std::uint64_t seed, unsigned replications)>;

inline constexpr unsigned kFirstReplications = 5, kMostReplications = 40;

// The figure of each replication, and whether the targets are met. While a target is unsure, the number of replications
// is doubled, up to kMostReplications. `random` false: all replications are the same one, and one is run.
Measured measure_targets(const RunLoad& run, bool random, std::span<const Bound> targets, std::uint64_t seed);

struct Candidate {
  std::size_t machine = 0;  // of the caller's list
  unsigned disks = 1;
  double price = 0;
};
// Cheapest first; of equal prices, fewer disks first, then in the order of machines.
void sort_by_price(std::vector<Candidate>& candidates);

struct Sized {
  Candidate candidate;
  std::optional<Measured> measured;
  std::string problem;  // why it cannot be measured: the disks do not fit its placement
};
using MeasureCandidate = std::function<Result<Measured>(const Candidate&)>;  // any thread

// Measures candidates, which are in order of price, on `threads` threads. The result has the cheapest ones up to the
// first that meets all targets, or all if none does or `all` is set. It does not depend on the number of threads.
std::vector<Sized> find_cheapest(std::span<const Candidate> candidates, const MeasureCandidate& measure,
                                 unsigned threads, bool all, const std::function<void()>& measured);

}  // namespace mdfs::sim
