// mdfs: mounts volumes and works on their images. Called mount.mdfs or mount.fuse.mdfs it is the helper of mount(8).
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <string_view>

#include "commands.h"
#include "support/streams.h"

int main(int argc, char** argv) {
  mdfs::tools::open_standard_streams();
  const std::string_view called = argc > 0 ? argv[0] : "";
  if (called.ends_with("mount.mdfs") || called.ends_with("mount.fuse.mdfs"))
    return mdfs::tools::mount_helper(argc, argv);
  mdfs::tools::Action action;
  CLI::App app{"Mount MDFS volumes and work on their images."};
  app.require_subcommand(1);
  mdfs::tools::add_mount_commands(app, action);
  mdfs::tools::add_volume_commands(app, action);
  mdfs::tools::add_image_commands(app, action);
  mdfs::tools::add_window_commands(app, action);
  mdfs::tools::add_defrag_commands(app, action);
  mdfs::tools::add_disk_commands(app, action);
  mdfs::tools::add_scrub_commands(app, action);
  mdfs::tools::add_serve_command(app, action);
  mdfs::tools::add_stream_commands(app, action);
  mdfs::tools::add_film_commands(app, action);
  mdfs::tools::add_meter_command(app, action);
  return mdfs::tools::run_program(app, "mdfs", argc, argv, [&] { return action(); });
}
