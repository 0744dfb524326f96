// mdfs-sim: a discrete-event simulator of disk arrays that serve windows of images.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "commands.h"
#include "support/command.h"
#include "support/streams.h"

int main(int argc, char** argv) {
  mdfs::tools::open_standard_streams();
  CLI::App app("Simulate machines that serve windows of images; see mdfs-sim(1).", "mdfs-sim");
  app.require_subcommand(1);
  mdfs::tools::SimProgram program{app, {}};
  mdfs::tools::add_window_commands(program);
  mdfs::tools::add_load_commands(program);
  mdfs::tools::add_rebuild_command(program);
  mdfs::tools::add_replay_command(program);
  mdfs::tools::add_meter_command(program);
  mdfs::tools::add_size_command(program);
  mdfs::tools::add_compare_command(program);
  mdfs::tools::add_paper_command(program);
  mdfs::tools::add_machine_commands(program);
  mdfs::tools::add_calibrate_command(program);
  return mdfs::tools::run_program(
      app, "mdfs-sim", argc, argv, [&program] { return program.action(); }, mdfs::tools::EmptyText::kRefused);
}
