// Events a second of the simulator.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include "sim/experiment.h"
#include "sim/paper_setup.h"

namespace mdfs::sim {
namespace {

// A backlog of windows on sixteen disks: long queues, a heap of a few dozen events.
void backlog(benchmark::State& state) {
  const System system = preset_system("gigaview-t9000-004", 16).value();
  const LoadOptions options{
      .length = plane(512, 512), .windows = 1000, .warm_up = 0, .replications = 1, .seed = 1, .own_images = false};
  std::uint64_t events = 0;
  for ([[maybe_unused]] auto _ : state) events += saturate(system, options).events;
  state.counters["events/s"] = benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}
BENCHMARK(backlog)->Unit(benchmark::kMillisecond);

// Poisson arrivals at 80 %: the usual experiment.
void poisson_load(benchmark::State& state) {
  const System system = preset_system("gigaview-t9000-004", 8).value();
  const LoadOptions options{
      .length = plane(512, 512), .windows = 3000, .warm_up = 0.1, .replications = 1, .seed = 1, .own_images = false};
  std::uint64_t events = 0;
  for ([[maybe_unused]] auto _ : state) events += poisson(system, options, 6).events;
  state.counters["events/s"] = benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}
BENCHMARK(poisson_load)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace mdfs::sim

BENCHMARK_MAIN();
