// mdfs scrub start, status, cancel and resume.
// SPDX-License-Identifier: Apache-2.0
#include "mdfs/ondisk.h"
#include "operation_command.h"

namespace mdfs::tools {

void add_scrub_commands(CLI::App& app, Action& action) {
  OperationNoun scrub{};
  scrub.name = "scrub";
  scrub.summary = "Verify everything on the disks, and repair metadata from good copies";
  scrub.kind = MDFS_OPERATION_SCRUB;
  scrub.words = {"scrub", "pieces examined", "rewritten", "damaged"};
  scrub.start = "Start a scrub in the background";
  scrub.status = "Show progress and findings of the scrub";
  scrub.dry_run = "Count damage, but repair nothing";
  scrub.budget = "Read at most this much per second, such as 50MiB (default: no limit)";
  scrub.start_path = "Mount point, or any file on the volume";
  add_operation_commands(app, action, scrub);
}

}  // namespace mdfs::tools
