// Building loads, running them, and gathering figures.
// SPDX-License-Identifier: Apache-2.0
#include "sim/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/checked.h"

namespace mdfs::sim {
namespace {

constexpr std::size_t kBatches = 20;
constexpr std::uint64_t kSeedStep = 0x9e3779b97f4a7c15;  // between replications
constexpr std::uint64_t kEngineSalt = 0x5851f42d4c957f2d;
constexpr std::uint64_t kGapSalt = 0x14057b7ef767814f;

void add_use(std::vector<ResourceUse>& sum, const std::vector<ResourceUse>& use, double weight) {
  if (sum.empty()) {
    sum = use;
    for (ResourceUse& resource : sum)
      for (InstanceUse& instance : resource.instances) instance = {.lost = instance.lost};
  }
  for (std::size_t i = 0; i < use.size(); ++i)
    for (std::size_t j = 0; j < use[i].instances.size(); ++j) {
      InstanceUse& to = sum[i].instances[j];
      const InstanceUse& from = use[i].instances[j];
      to.utilization += weight * from.utilization;
      to.mean_queue += weight * from.mean_queue;
      to.busy_s += from.busy_s;
      to.served += from.served;
      to.max_queue = std::max(to.max_queue, from.max_queue);
    }
}

// What a load remembers of its run: when the warm-up ended, and what was used until arrivals ended.
struct Measure {
  std::size_t first = 0;  // record
  double begun_s = 0;
  double ended_s = 0;
  std::vector<ResourceUse> use;
  std::uint64_t events = 0;
};

// Without a warm-up, and with all that was asked for served.
Measure whole_run(const Simulation& simulation) {
  return {
      .first = 0, .begun_s = 0, .ended_s = simulation.now_s(), .use = simulation.use(), .events = simulation.events()};
}

void gather(LoadResult& result, const std::vector<WindowRecord>& records, const Measure& measure) {
  std::vector<double> delays;
  double bytes = 0;
  for (std::size_t i = measure.first; i < records.size(); ++i) {
    MDFS_CHECK(records[i].done_s >= 0);
    delays.push_back(records[i].delay_s());
  }
  result.read_bytes = 0;
  for (const WindowRecord& record : records) {
    result.read_bytes += record.read_bytes;
    if (record.done_s > measure.begun_s && record.done_s <= measure.ended_s) bytes += record.window_bytes;
  }
  result.replication_mean.push_back(summarize(delays).mean);
  result.delays_s.insert(result.delays_s.end(), delays.begin(), delays.end());
  const double span = measure.ended_s - measure.begun_s;
  result.replication_throughput.push_back(span > 0 ? bytes / span : 0);
  result.events += measure.events;
  add_use(result.use, measure.use, 1);
}

void close(LoadResult& result) {
  const auto runs = static_cast<double>(result.replication_mean.size());
  result.done_bytes_per_s = summarize(result.replication_throughput).mean;
  for (ResourceUse& resource : result.use)
    for (InstanceUse& instance : resource.instances) {
      instance.utilization /= runs;
      instance.mean_queue /= runs;
    }
  result.mean = result.replication_mean.size() > 1 ? confidence_interval(result.replication_mean)
                                                   : confidence_interval(batch_means(result.delays_s, kBatches));
  result.mean.mean = summarize(result.delays_s).mean;
}

double window_bytes(const geometry::Geometry& image, const geometry::Coord& length) {
  double bytes = static_cast<double>(image.sample_bytes());
  for (unsigned axis = 0; axis < image.rank; ++axis) bytes *= static_cast<double>(length[axis]);
  return bytes;
}

// Clears statistics when the warm-up is over and keeps them when the last window has arrived.
class OpenLoad final : public Workload {
 public:
  enum Token : std::uint64_t { kWarm, kEnd };
  explicit OpenLoad(Measure& measure) : measure_(measure) {}
  void window_done(Simulation&, std::size_t) override {}
  void alarm(Simulation& simulation, std::uint64_t token) override {
    if (token == kWarm) {
      measure_.begun_s = simulation.now_s();
      simulation.clear_use();
    } else {
      measure_.ended_s = simulation.now_s();
      measure_.use = simulation.use();
    }
  }

 private:
  Measure& measure_;
};

class ClosedLoad final : public Workload {
 public:
  ClosedLoad(const System& system, const LoadOptions& options, unsigned clients, double think_s, Measure& measure,
             std::uint64_t seed)
      : system_(system),
        options_(options),
        think_s_(think_s),
        measure_(measure),
        positions_(seed),
        left_(options.windows > clients ? options.windows - clients : 0) {}

  void ask(Simulation& simulation, unsigned client) {
    const auto window = random_window(system_.setup().image, options_.length, positions_);
    simulation.submit_at(simulation.now_s(), window, client, options_.own_images ? client : 0);
  }
  void window_done(Simulation& simulation, std::size_t record) override {
    ++done_;
    if (done_ == measure_.first) {
      measure_.begun_s = simulation.now_s();
      simulation.clear_use();
    }
    if (left_ > 0) {
      --left_;
      simulation.alarm_at(simulation.now_s() + think_s_, simulation.records()[record].client);
      if (left_ == 0) {  // from here on clients leave
        measure_.ended_s = simulation.now_s();
        measure_.use = simulation.use();
      }
    }
  }
  void alarm(Simulation& simulation, std::uint64_t token) override { ask(simulation, static_cast<unsigned>(token)); }

 private:
  const System& system_;
  const LoadOptions& options_;
  const double think_s_;
  Measure& measure_;
  Random positions_;
  unsigned left_;
  std::size_t done_ = 0;
};

// Requests at their times, or when the one before is done.
class TraceLoad final : public Workload {
 public:
  TraceLoad(std::span<const System> images, std::span<const TraceEntry> trace)
      : images_(images), trace_(trace), followers_(trace.size()) {
    for (std::size_t i = 0; i < trace.size(); ++i) {
      if (!trace[i].after) continue;
      MDFS_CHECK(*trace[i].after < i);
      followers_[*trace[i].after].push_back(i);
    }
  }

  void start(Simulation& simulation) {
    for (std::size_t i = 0; i < trace_.size(); ++i)
      if (!trace_[i].after) request(simulation, i, trace_[i].time_s);
  }
  void window_done(Simulation& simulation, std::size_t record) override {
    for (const std::size_t next : followers_[entry_of_record_[record]])
      request(simulation, next, std::max(trace_[next].time_s, simulation.now_s()));
  }
  void alarm(Simulation&, std::uint64_t) override {}

  std::vector<WindowRecord> in_order_of_trace(const std::vector<WindowRecord>& records) const {
    MDFS_CHECK(records.size() == trace_.size());
    std::vector<WindowRecord> ordered(records.size());
    for (std::size_t i = 0; i < records.size(); ++i) ordered[entry_of_record_[i]] = records[i];
    return ordered;
  }

 private:
  void request(Simulation& simulation, std::size_t i, double time_s) {
    const TraceEntry& entry = trace_[i];
    entry_of_record_.push_back(i);
    simulation.submit_at(time_s, entry.windows, entry.client, entry.base, images_[entry.image], entry.write);
  }

  const std::span<const System> images_;
  const std::span<const TraceEntry> trace_;
  std::vector<std::vector<std::size_t>> followers_;
  std::vector<std::size_t> entry_of_record_;
};

std::size_t warm_windows(const LoadOptions& options) {
  return static_cast<std::size_t>(options.warm_up * options.windows);
}

}  // namespace

geometry::Window random_window(const geometry::Geometry& image, const geometry::Coord& length, Random& random) {
  geometry::Window window;
  for (unsigned axis = 0; axis < image.rank; ++axis) {
    MDFS_CHECK(length[axis] >= 1 && length[axis] <= image.shape[axis]);
    window.start[axis] = random.below(image.shape[axis] - length[axis] + 1);
    window.length[axis] = length[axis];
  }
  return window;
}

Status check_length(const geometry::Geometry& image, const geometry::Coord& length) {
  for (unsigned axis = 0; axis < image.rank; ++axis)
    if (length[axis] < 1 || length[axis] > image.shape[axis])
      return Error{Errc::kOutOfRange, fmt::format("a window of {} along axis {} is not in 1..{}", length[axis],
                                                  image.axes[axis], image.shape[axis])};
  std::uint64_t extents = 1;  // at most, wherever the window lies
  for (unsigned axis = 0; axis < image.rank && extents <= kMaxExtentsOfWindow; ++axis)
    extents *= std::min(ceil_div(length[axis], image.extent[axis]) + 1, kMaxExtentsOfWindow + 1);
  if (extents > kMaxExtentsOfWindow)
    return Error{Errc::kOutOfRange, fmt::format("a window may touch at most {} extents", kMaxExtentsOfWindow)};
  return {};
}

WindowResult read_window(const System& system, const geometry::Window& window, std::uint64_t seed) {
  Simulation simulation(system, seed);
  simulation.submit_at(0, window);
  simulation.run();
  return {simulation.records().front(), simulation.use(), simulation.events()};
}

double RandomResult::maximum_sustainable() const {
  double most = 0;
  for (const ResourceUse& resource : use) most = std::max(most, resource.mean_utilization());
  return most > 0 ? throughput() / most : 0;
}

RandomResult read_random(const System& system, const geometry::Coord& length, unsigned positions, std::uint64_t seed) {
  MDFS_CHECK(positions >= 1);
  RandomResult result;
  Random random(seed);
  double total_s = 0;
  for (unsigned i = 0; i < positions; ++i) {
    const auto one = read_window(system, random_window(system.setup().image, length, random), random.bits());
    result.delays_s.push_back(one.record.delay_s());
    result.window_bytes = one.record.window_bytes;
    total_s += one.record.delay_s();
    add_use(result.use, one.use, one.record.delay_s());
  }
  for (ResourceUse& resource : result.use)
    for (InstanceUse& instance : resource.instances) {
      if (total_s <= 0) break;  // nothing was in use
      instance.utilization /= total_s;
      instance.mean_queue /= total_s;
    }
  result.mean_delay_s = total_s / positions;
  return result;
}

std::vector<geometry::Coord> squares(const geometry::Geometry& image, std::uint64_t first, std::uint64_t last,
                                     std::uint64_t step) {
  std::vector<geometry::Coord> lengths;
  for (std::uint64_t side = first; side <= last; side += step) {
    geometry::Coord length{};
    for (unsigned axis = 0; axis < image.rank; ++axis) length[axis] = axis + 2 >= image.rank ? side : 1;
    lengths.push_back(length);
  }
  return lengths;
}

LatencyFit fit_sizes(const System& system, std::span<const geometry::Coord> lengths, unsigned positions,
                     std::uint64_t seed) {
  LatencyFit fit;
  for (const geometry::Coord& length : lengths) {
    const RandomResult result = read_random(system, length, positions, seed);
    fit.sizes_bytes.push_back(result.window_bytes);
    fit.delays_s.push_back(result.mean_delay_s);
  }
  const Line line = fit_line(fit.sizes_bytes, fit.delays_s);
  fit.latency_s = line.a;
  fit.bytes_per_s = 1 / line.b;
  fit.r_squared = line.r_squared;
  return fit;
}

LoadResult poisson(const System& system, const LoadOptions& options, double windows_per_s) {
  LoadResult result;
  result.requested_bytes_per_s = windows_per_s * window_bytes(system.setup().image, options.length);
  for (unsigned run = 0; run < options.replications; ++run) {
    const std::uint64_t seed = options.seed + run * kSeedStep;
    Random positions(seed);
    Random gaps(seed ^ kGapSalt);
    Simulation simulation(system, seed ^ kEngineSalt);
    Measure measure{.first = warm_windows(options), .begun_s = 0, .ended_s = 0, .use = {}, .events = 0};
    double time = 0;
    for (unsigned i = 0; i < options.windows; ++i) {
      time += gaps.exponential(1 / windows_per_s);
      if (i == measure.first) simulation.alarm_at(time, OpenLoad::kWarm);
      if (i + 1 == options.windows) simulation.alarm_at(time, OpenLoad::kEnd);
      simulation.submit_at(time, random_window(system.setup().image, options.length, positions), i,
                           options.own_images ? i : 0);
    }
    OpenLoad load(measure);
    simulation.run(&load);
    measure.events = simulation.events();
    gather(result, simulation.records(), measure);
  }
  close(result);
  return result;
}

LoadResult closed(const System& system, const LoadOptions& options, unsigned clients, double think_s) {
  LoadResult result;
  for (unsigned run = 0; run < options.replications; ++run) {
    const std::uint64_t seed = options.seed + run * kSeedStep;
    Simulation simulation(system, seed ^ kEngineSalt);
    Measure measure{.first = warm_windows(options), .begun_s = 0, .ended_s = 0, .use = {}, .events = 0};
    ClosedLoad load(system, options, clients, think_s, measure, seed);
    for (unsigned client = 0; client < std::min(clients, options.windows); ++client) load.ask(simulation, client);
    simulation.run(&load);
    if (measure.ended_s == 0) {
      measure.ended_s = simulation.now_s();
      measure.use = simulation.use();
    }
    measure.events = simulation.events();
    gather(result, simulation.records(), measure);
  }
  close(result);
  result.requested_bytes_per_s = result.done_bytes_per_s;
  return result;
}

LoadResult saturate(const System& system, const LoadOptions& options) {
  LoadResult result;
  for (unsigned run = 0; run < options.replications; ++run) {
    const std::uint64_t seed = options.seed + run * kSeedStep;
    Random positions(seed);
    Simulation simulation(system, seed ^ kEngineSalt);
    for (unsigned i = 0; i < options.windows; ++i)
      simulation.submit_at(0, random_window(system.setup().image, options.length, positions), i,
                           options.own_images ? i : 0);
    simulation.run();
    gather(result, simulation.records(), whole_run(simulation));
  }
  close(result);
  result.requested_bytes_per_s = result.done_bytes_per_s;
  return result;
}

LoadResult replay(std::span<const System> images, std::span<const TraceEntry> trace, std::uint64_t seed,
                  unsigned replications) {
  LoadResult result;
  if (trace.empty()) return result;
  MDFS_CHECK(!images.empty());
  double bytes = 0;
  double last_s = 0;
  for (const TraceEntry& entry : trace) {
    MDFS_CHECK(entry.image < images.size());
    last_s = std::max(last_s, entry.time_s);
    for (const geometry::Window& window : entry.windows)
      bytes += window_bytes(images[entry.image].setup().image, window.length);
  }
  for (unsigned run = 0; run < replications; ++run) {
    Simulation simulation(images.front(), (seed + run * kSeedStep) ^ kEngineSalt);
    TraceLoad load(images, trace);
    load.start(simulation);
    simulation.run(&load);
    gather(result, load.in_order_of_trace(simulation.records()), whole_run(simulation));
  }
  close(result);
  result.requested_bytes_per_s = last_s > 0 ? bytes / last_s : 0;
  return result;
}

}  // namespace mdfs::sim
