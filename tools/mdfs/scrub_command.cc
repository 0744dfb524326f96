// mdfs scrub start, status, cancel and resume.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "mdfs/ondisk.h"
#include "operation_text.h"

namespace mdfs::tools {
namespace {

constexpr OperationWords kWords = {"scrub", "pieces looked at", "written anew", "damaged"};

struct ScrubArguments {
  std::string path;
  std::string budget;
  std::uint32_t action = MDFS_IOC_OPERATION_STATUS;
  bool dry_run = false;
  bool wait = false;
  bool json = false;
};

Status scrub_command(const ScrubArguments& arguments) {
  mdfs_ioc_operation request = operation_request(MDFS_OPERATION_SCRUB, arguments.action);
  if (!arguments.budget.empty()) {
    MDFS_TRY_ASSIGN(request.budget_bytes_s, parse_budget(arguments.budget));
  }
  if (arguments.dry_run) request.flags |= MDFS_OPERATION_DRY_RUN;
  MDFS_TRY_ASSIGN(mdfs_ioc_operation now, call_operation(arguments.path, request));
  if (arguments.wait) {
    MDFS_TRY_ASSIGN(now, wait_for_operation(arguments.path, MDFS_OPERATION_SCRUB, kWords));
  }
  if (arguments.json)
    fmt::print("{}\n", operation_json(now, kWords, arguments.path));
  else
    fmt::print("{}", operation_text(now, kWords, arguments.path));
  return arguments.wait ? operation_outcome(now, kWords) : Status();
}

}  // namespace

void add_scrub_commands(CLI::App& app, Action& action) {
  CLI::App* noun = app.add_subcommand("scrub", "Read everything on the disks, mend what has a good copy");
  noun->require_subcommand(1);
  const auto add = [&](const char* verb, const char* what, std::uint32_t number) {
    const auto arguments = std::make_shared<ScrubArguments>();
    arguments->action = number;
    CLI::App* command = noun->add_subcommand(verb, what);
    if (number == MDFS_IOC_OPERATION_START)
      command->add_flag("--dry-run", arguments->dry_run, "Mend nothing, only count");
    if (number == MDFS_IOC_OPERATION_START || number == MDFS_IOC_OPERATION_RESUME)
      command->add_option("--budget", arguments->budget, "Read at most so much a second: 50MiB. Default: no limit");
    if (number != MDFS_IOC_OPERATION_CANCEL) command->add_flag("--wait", arguments->wait, "Return when it has ended");
    command->add_flag("--json", arguments->json, "Print JSON");
    command->add_option("PATH", arguments->path, "Mount point, or any file on the volume")->required();
    command->callback([arguments, &action] { action = [arguments] { return scrub_command(*arguments); }; });
  };
  add("start", "Begin a scrub, which runs in the background", MDFS_IOC_OPERATION_START);
  add("status", "Show how far it is and what it found", MDFS_IOC_OPERATION_STATUS);
  add("cancel", "Stop it", MDFS_IOC_OPERATION_CANCEL);
  add("resume", "Go on with one that was cancelled, or change its budget", MDFS_IOC_OPERATION_RESUME);
}

}  // namespace mdfs::tools
