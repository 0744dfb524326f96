// A trace that is asked of a machine: options and run of replay and meter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "report.h"
#include "sim/experiment.h"
#include "trace_file.h"

namespace CLI {
class App;
}

namespace mdfs::tools {

struct TraceOptions : SimOptions {
  std::string trace;
  bool reads_only = false;
  bool independent = false;
  unsigned replications = 5;

  void add_to(CLI::App& command);
};

struct TracedLoad {
  ReplayTrace trace;
  std::vector<sim::TraceEntry> entries;
  std::vector<sim::System> systems;
  unsigned replications = 1;  // a machine without randomness needs one
  sim::LoadResult result;     // delays of one replication after another, each in the order of `entries`
};

Result<TracedLoad> run_trace(const TraceOptions& options);
// Reports the parameters and describes the images.
void describe(const TraceOptions& options, const TracedLoad& load, Report& report);

}  // namespace mdfs::tools
