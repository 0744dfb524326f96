// Running a trace.
// SPDX-License-Identifier: Apache-2.0
#include "traced_load.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "support/ranges.h"

namespace mdfs::tools {
namespace {

constexpr unsigned kMaxReplications = 1000;

}  // namespace

void TraceOptions::add_to(CLI::App& command) {
  add_sim_options(command, *this);
  command.add_option("TRACE", trace, "Trace of a mount (mount option trace=), or lines SECONDS WINDOW [CLIENT]")
      ->required();
  command
      .add_option("--replications", replications,
                  "Number of runs with different random times of the machine, for the error bar")
      ->check(whole_number(1, kMaxReplications))
      ->capture_default_str();
  command.add_flag("--reads-only", reads_only, "Leave writes out (default: they cost as much as reads)");
  command.add_flag("--independent", independent,
                   "Begin each window at its time, even if the client still waits for its last one");
}

Result<TracedLoad> run_trace(const TraceOptions& options) {
  MDFS_TRY_ASSIGN(const sim::Setup setup, make_setup(options));
  TracedLoad load;
  MDFS_TRY_ASSIGN(load.trace, read_trace(options.trace, options.reads_only, setup.image));
  MDFS_TRY_ASSIGN(load.entries, entries_of(load.trace, options.trace, options.independent));
  MDFS_TRY_ASSIGN(load.systems, systems_of(setup, load.trace, !options.cache));
  load.replications = load.systems.front().route().is_random() ? options.replications : 1;
  load.result = sim::replay(load.systems, load.entries, options.seed, load.replications);
  return load;
}

void describe(const TraceOptions& options, const TracedLoad& load, Report& report) {
  const std::size_t objects = load.trace.images.size() - 1;
  report.parameter("trace", options.trace);
  report.parameter("reads_only", options.reads_only);
  report.parameter("independent", options.independent);
  report.parameter("replications", load.replications);
  report.parameter("objects", objects);
  if (objects > 0) report.line(fmt::format("{} images and files, as the trace describes them", objects));
}

}  // namespace mdfs::tools
