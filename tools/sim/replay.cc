// mdfs-sim replay: what a mount was asked, asked of a machine.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "options.h"
#include "plot.h"
#include "report.h"
#include "sim/experiment.h"
#include "support/ranges.h"
#include "trace_file.h"

namespace mdfs::tools {
namespace {

constexpr unsigned kMaxReplications = 1000;

struct ReplayOptions : SimOptions {
  std::string trace;
  bool reads_only = false;
  bool independent = false;
  unsigned replications = 5;
};

Status run_replay(const ReplayOptions& options) {
  MDFS_TRY_ASSIGN(const sim::Setup setup, make_setup(options));
  MDFS_TRY_ASSIGN(const ReplayTrace trace, read_trace(options.trace, options.reads_only, setup.image));
  MDFS_TRY_ASSIGN(const std::vector<sim::TraceEntry> entries, entries_of(trace, options.trace, options.independent));
  MDFS_TRY_ASSIGN(const std::vector<sim::System> systems, systems_of(setup, trace, !options.cache));
  // Without randomness in the machine all replications are the same one.
  const unsigned replications = systems.front().route().is_random() ? options.replications : 1;
  const sim::LoadResult result = sim::replay(systems, entries, options.seed, replications);
  Report report(options, "replay", &systems.front());
  report.parameter("trace", options.trace);
  report.parameter("reads_only", options.reads_only);
  report.parameter("independent", options.independent);
  report.parameter("replications", replications);
  report.parameter("objects", trace.images.size() - 1);
  report.json()["requested_bytes_per_s"] = result.requested_bytes_per_s;
  report.json()["done_bytes_per_s"] = result.done_bytes_per_s;
  report.json()["read_bytes"] = result.read_bytes;
  report.delays(result.delays_s, replications > 1 ? &result.mean : nullptr);
  if (trace.images.size() > 1)
    report.line(fmt::format("{} images and files, as the trace describes them", trace.images.size() - 1));
  report.line(fmt::format("throughput {}", rate_text(result.done_bytes_per_s)));
  report.resources(result.use);
  if (options.csv) {
    report.columns({"window", "time_s", "object", "op", "delay_s"});
    for (std::size_t i = 0; i < entries.size(); ++i)
      report.row({std::to_string(i), number_text(entries[i].time_s),
                  std::to_string(trace.images[entries[i].image].object),
                  trace.requests[i].request.write ? "write" : "read", number_text(result.delays_s[i])});
  }
  report.print();
  if (!options.plot.empty()) MDFS_TRY(write_figure(delay_figure("replay", result.delays_s), options.plot));
  return {};
}

}  // namespace

void add_replay_command(SimProgram& program) {
  auto options = std::make_shared<ReplayOptions>();
  auto* command = program.app.add_subcommand("replay", "Request windows at the times of a trace");
  add_sim_options(*command, *options);
  command
      ->add_option("TRACE", options->trace, "Trace of a mount (mount option trace=), or lines SECONDS WINDOW [CLIENT]")
      ->required();
  command
      ->add_option("--replications", options->replications,
                   "Number of runs with different random times of the machine, for the error bar")
      ->check(whole_number(1, kMaxReplications))
      ->capture_default_str();
  command->add_flag("--reads-only", options->reads_only, "Leave writes out (default: they cost as much as reads)");
  command->add_flag("--independent", options->independent,
                    "Begin each window at its time, even if the client still waits for its last one");
  command->callback([&program, options] { program.action = [options] { return run_replay(*options); }; });
}

}  // namespace mdfs::tools
