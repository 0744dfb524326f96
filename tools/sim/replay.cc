// mdfs-sim replay: what a mount was asked, asked of a machine.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "plot.h"
#include "traced_load.h"

namespace mdfs::tools {
namespace {

Status run_replay(const TraceOptions& options) {
  MDFS_TRY_ASSIGN(const TracedLoad load, run_trace(options));
  const sim::LoadResult& result = load.result;
  Report report(options, "replay", &load.systems.front());
  report.delays(result.delays_s, load.replications > 1 ? &result.mean : nullptr);
  describe(options, load, report);
  report.json()["requested_bytes_per_s"] = result.requested_bytes_per_s;
  report.json()["done_bytes_per_s"] = result.done_bytes_per_s;
  report.json()["read_bytes"] = result.read_bytes;
  report.line(fmt::format("throughput {}", rate_text(result.done_bytes_per_s)));
  report.resources(result.use);
  if (options.csv) {
    report.columns({"window", "time_s", "object", "op", "delay_s"});
    for (std::size_t i = 0; i < load.entries.size(); ++i)
      report.row({std::to_string(i), number_text(load.entries[i].time_s),
                  std::to_string(load.trace.images[load.entries[i].image].object),
                  load.entries[i].write ? "write" : "read", number_text(result.delays_s[i])});
  }
  report.print();
  if (!options.plot.empty()) MDFS_TRY(write_figure(delay_figure("replay", result.delays_s), options.plot));
  return {};
}

}  // namespace

void add_replay_command(SimProgram& program) {
  auto options = std::make_shared<TraceOptions>();
  auto* command = program.app.add_subcommand("replay", "Request windows at the times of a trace");
  options->add_to(*command);
  command->callback([&program, options] { program.action = [options] { return run_replay(*options); }; });
}

}  // namespace mdfs::tools
