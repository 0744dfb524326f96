// mdfs scrub start, status, cancel and resume.
// SPDX-License-Identifier: Apache-2.0
#include "mdfs/ondisk.h"
#include "operation_command.h"

namespace mdfs::tools {

void add_scrub_commands(CLI::App& app, Action& action) {
  OperationNoun scrub{};
  scrub.name = "scrub";
  scrub.summary = "Read everything on the disks, repair what has a good copy";
  scrub.kind = MDFS_OPERATION_SCRUB;
  scrub.words = {"scrub", "pieces looked at", "written anew", "damaged"};
  scrub.start = "Begin a scrub, which runs in the background";
  scrub.status = "Show how far it is and what it found";
  scrub.dry_run = "Repair nothing, only count";
  scrub.budget = "Read at most so much a second: 50MiB. Default: no limit";
  scrub.start_path = "Mount point, or any file on the volume";
  add_operation_commands(app, action, scrub);
}

}  // namespace mdfs::tools
