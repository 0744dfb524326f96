// mdfs-sim: a discrete-event simulator of disk arrays that serve windows of images.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <string>

#include "commands.h"
#include "support/command.h"
#include "support/complete.h"
#include "support/streams.h"

int main(int argc, char** argv) {
  mdfs::tools::open_standard_streams();
  // An empty text is no machine, shape, size or window.
  for (int i = 1; i < argc && !mdfs::tools::asks_for_completion(argc, argv); ++i)
    if (*argv[i] == '\0')
      return mdfs::tools::report("mdfs-sim",
                                 {mdfs::Errc::kUsage, *argv[i - 1] == '-' ? std::string(argv[i - 1]) + ": is empty"
                                                                          : std::string("an argument is empty")});
  CLI::App app("Simulate machines that serve windows of images; see mdfs-sim(1).", "mdfs-sim");
  app.require_subcommand(1);
  mdfs::tools::SimProgram program{app, {}};
  mdfs::tools::add_window_commands(program);
  mdfs::tools::add_load_commands(program);
  mdfs::tools::add_replay_command(program);
  mdfs::tools::add_compare_command(program);
  mdfs::tools::add_paper_command(program);
  mdfs::tools::add_machine_commands(program);
  mdfs::tools::add_calibrate_command(program);
  return mdfs::tools::run_program(app, "mdfs-sim", argc, argv, [&program] { return program.action(); });
}
