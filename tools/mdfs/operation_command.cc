// The four verbs of a long operation: start, status, cancel and resume.
// SPDX-License-Identifier: Apache-2.0
#include "operation_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "mdfs/ondisk.h"
#include "support/ranges.h"
#include "support/streams.h"

namespace mdfs::tools {
namespace {

struct Arguments {
  std::string path;
  std::string budget;
  std::uint32_t action = MDFS_IOC_OPERATION_STATUS;
  bool dry_run = false;
  bool wait = false;
  bool json = false;
  OperationNoun::Prepare prepare;
};

Status run(const OperationNoun& noun, const Arguments& arguments) {
  mdfs_ioc_operation request = operation_request(noun.kind, arguments.action);
  if (!arguments.budget.empty()) {
    MDFS_TRY_ASSIGN(request.budget_bytes_s, parse_budget(arguments.budget));
  }
  if (arguments.dry_run) request.flags |= MDFS_OPERATION_DRY_RUN;
  if (arguments.prepare) MDFS_TRY(arguments.prepare(arguments.path, request));
  MDFS_TRY_ASSIGN(mdfs_ioc_operation now, call_operation(arguments.path, request));
  if (arguments.wait) {
    MDFS_TRY_ASSIGN(now, wait_for_operation(arguments.path, noun.kind, noun.words));
  }
  if (arguments.json)
    print_out("{}\n", operation_json(now, noun.words, arguments.path,
                                     noun.more_json == nullptr ? nlohmann::ordered_json() : noun.more_json(now)));
  else
    print_out("{}", operation_text(now, noun.words, arguments.path,
                                   noun.more_text == nullptr ? std::string() : noun.more_text(now)));
  return arguments.wait ? operation_outcome(now, noun.words) : Status();
}

}  // namespace

void add_operation_commands(CLI::App& app, Action& action, const OperationNoun& noun) {
  CLI::App* parent = app.add_subcommand(noun.name, noun.summary);
  parent->require_subcommand(1);
  const auto add = [&](const char* verb, const char* what, std::uint32_t number) {
    const bool start = number == MDFS_IOC_OPERATION_START;
    const auto arguments = std::make_shared<Arguments>();
    arguments->action = number;
    CLI::App* command = parent->add_subcommand(verb, what);
    if (start) command->add_flag("--dry-run", arguments->dry_run, noun.dry_run);
    if (start && noun.start_options) arguments->prepare = noun.start_options(*command);
    if (start || number == MDFS_IOC_OPERATION_RESUME)
      command->add_option("--budget", arguments->budget, noun.budget)->check(not_empty());
    if (number != MDFS_IOC_OPERATION_CANCEL)
      command->add_flag("--wait", arguments->wait, "Wait until the operation has ended");
    command->add_flag("--json", arguments->json, "Print JSON");
    command->add_option("PATH", arguments->path, start ? noun.start_path : "Mount point, or any file on the volume")
        ->required();
    command->callback([noun, arguments, &action] { action = [noun, arguments] { return run(noun, *arguments); }; });
  };
  add("start", noun.start, MDFS_IOC_OPERATION_START);
  add("status", noun.status, MDFS_IOC_OPERATION_STATUS);
  add("cancel", "Stop the operation", MDFS_IOC_OPERATION_CANCEL);
  add("resume", "Resume the operation, or change its budget", MDFS_IOC_OPERATION_RESUME);
}

}  // namespace mdfs::tools
