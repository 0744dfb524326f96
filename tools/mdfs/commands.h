// The nouns of the command mdfs: each adds its verbs to the parser and sets the requested action.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/command.h"

namespace mdfs::tools {

void add_mount_commands(CLI::App& app, Action& action);     // mount, umount
void add_lost_command(CLI::App& noun, Action& action);      // volume lost
void add_trim_command(CLI::App& noun, Action& action);      // volume trim
void add_volume_commands(CLI::App& app, Action& action);    // volume sync, status
void add_defrag_commands(CLI::App& app, Action& action);    // defrag start, status, cancel, resume
void add_display_command(CLI::App& noun, Action& action);   // image display
void add_levels_command(CLI::App& noun, Action& action);    // image levels
void add_protect_command(CLI::App& noun, Action& action);   // image protect
void add_spare_command(CLI::App& noun, Action& action);     // volume spare
void add_takeover_command(CLI::App& noun, Action& action);  // volume takeover
void add_rebuild_command(CLI::App& noun, Action& action);   // disk rebuild
void add_salvage_command(CLI::App& noun, Action& action);   // image salvage
void add_image_commands(CLI::App& app, Action& action);     // image create, import, export, info, layout
void add_window_commands(CLI::App& app, Action& action);    // window read, write, explain
void add_disk_commands(CLI::App& app, Action& action);      // disk list, add, weight, remove, replace, stats
void add_disk_stats_command(CLI::App& noun, Action& action);
void add_scrub_commands(CLI::App& app, Action& action);   // scrub start, status, cancel, resume
void add_serve_command(CLI::App& app, Action& action);    // serve
void add_meter_command(CLI::App& app, Action& action);    // meter
void add_stream_commands(CLI::App& app, Action& action);  // stream open, list, close
void add_film_commands(CLI::App& app, Action& action);    // play, send, receive, wall

// mount.mdfs SOURCE DIRECTORY [-sfnv] [-o OPTIONS], as mount(8) calls it.
int mount_helper(int argc, char** argv);

}  // namespace mdfs::tools
