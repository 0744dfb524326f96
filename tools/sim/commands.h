// The commands of mdfs-sim: each file adds its own to the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "support/command.h"

namespace CLI {
class App;
}

namespace mdfs::tools {

// A command sets `action` when it is the one that the command line names; main() runs it.
struct SimProgram {
  CLI::App& app;
  Action action;
};

void add_window_commands(SimProgram& program);    // window, random, sweep
void add_load_commands(SimProgram& program);      // poisson, closed, saturate, streams
void add_rebuild_command(SimProgram& program);    // rebuild
void add_replay_command(SimProgram& program);     // replay
void add_meter_command(SimProgram& program);      // meter
void add_size_command(SimProgram& program);       // size
void add_paper_command(SimProgram& program);      // paper
void add_machine_commands(SimProgram& program);   // machines, machine
void add_calibrate_command(SimProgram& program);  // calibrate
void add_compare_command(SimProgram& program);    // compare

}  // namespace mdfs::tools
