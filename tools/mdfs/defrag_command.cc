// mdfs defrag start, status, cancel and resume.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cmath>
#include <memory>

#include "commands.h"
#include "mdfs/ondisk.h"
#include "operation_text.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

constexpr OperationWords kWords = {"defragmentation", "images and files done", "groups moved", "damaged"};

// What figures[] of a defragmentation are, in order (src/volume/defrag.h).
enum Figure : std::uint8_t { kSeen, kMovedBytes, kNoRoom, kChanged, kRunsBefore, kRunsAfter, kRunsFresh };

struct DefragArguments {
  std::string path;
  std::string budget;
  double threshold = 0;
  std::uint32_t action = MDFS_IOC_OPERATION_STATUS;
  bool dry_run = false;
  bool wait = false;
  bool json = false;
};

double ratio(std::uint64_t of, std::uint64_t to) {
  return to == 0 ? 0 : static_cast<double>(of) / static_cast<double>(to);
}

double score_before(const mdfs_ioc_operation& now) { return ratio(now.figures[kRunsBefore], now.figures[kRunsFresh]); }
double score_after(const mdfs_ioc_operation& now) { return ratio(now.figures[kRunsAfter], now.figures[kRunsFresh]); }

std::string more_json(const mdfs_ioc_operation& now) {
  return fmt::format(
      ",\"threshold\": {:.3f}, \"seen\": {}, \"moved_bytes\": {}, \"no_room\": {}, \"changed_meanwhile\": {}, "
      "\"score_before\": {:.4f}, \"score_after\": {:.4f}",
      static_cast<double>(now.threshold) / 1000, now.figures[kSeen], now.figures[kMovedBytes], now.figures[kNoRoom],
      now.figures[kChanged], score_before(now), score_after(now));
}

std::string more_text(const mdfs_ioc_operation& now) {
  const bool dry_run = (now.flags & MDFS_OPERATION_DRY_RUN) != 0;
  std::string text = fmt::format("  {} looked at, {} with a score above {:.2f}; {} {}\n", now.figures[kSeen],
                                 now.items_total, static_cast<double>(now.threshold) / 1000,
                                 format_size(now.figures[kMovedBytes]), dry_run ? "would be moved" : "moved");
  if (now.figures[kNoRoom] > 0) text += fmt::format("  {} groups found no room in one piece\n", now.figures[kNoRoom]);
  if (now.figures[kChanged] > 0)
    text += fmt::format("  {} extents were written meanwhile and stay where they are\n", now.figures[kChanged]);
  if (now.figures[kRunsFresh] > 0)
    text += fmt::format("  score of what was moved: {:.2f} before, {:.2f} now\n", score_before(now), score_after(now));
  return text;
}

Status defrag_command(const DefragArguments& arguments) {
  mdfs_ioc_operation request = operation_request(MDFS_OPERATION_DEFRAG, arguments.action);
  if (!arguments.budget.empty()) {
    MDFS_TRY_ASSIGN(request.budget_bytes_s, parse_budget(arguments.budget));
  }
  if (arguments.dry_run) request.flags |= MDFS_OPERATION_DRY_RUN;
  if (arguments.action == MDFS_IOC_OPERATION_START) {
    struct stat found {};
    if (::stat(arguments.path.c_str(), &found) != 0) return from_errno(errno, arguments.path);
    if (S_ISREG(found.st_mode)) request.flags |= MDFS_OPERATION_OBJECT;
    request.threshold = static_cast<std::uint64_t>(std::llround(arguments.threshold * 1000));
  }
  MDFS_TRY_ASSIGN(mdfs_ioc_operation now, call_operation(arguments.path, request));
  if (arguments.wait) {
    MDFS_TRY_ASSIGN(now, wait_for_operation(arguments.path, MDFS_OPERATION_DEFRAG, kWords));
  }
  if (arguments.json)
    fmt::print("{}\n", operation_json(now, kWords, arguments.path, more_json(now)));
  else
    fmt::print("{}", operation_text(now, kWords, arguments.path, more_text(now)));
  return arguments.wait ? operation_outcome(now, kWords) : Status();
}

}  // namespace

void add_defrag_commands(CLI::App& app, Action& action) {
  CLI::App* noun = app.add_subcommand("defrag", "Lay anew what lies in many pieces");
  noun->require_subcommand(1);
  const auto add = [&](const char* verb, const char* what, std::uint32_t number) {
    const bool start = number == MDFS_IOC_OPERATION_START;
    const auto arguments = std::make_shared<DefragArguments>();
    arguments->action = number;
    CLI::App* command = noun->add_subcommand(verb, what);
    if (start) {
      command->add_flag("--dry-run", arguments->dry_run, "Move nothing, only count");
      command->add_option("--threshold", arguments->threshold, "Only what has a higher score. Default: 1.1")
          ->check(CLI::Range(1.0, 1000.0));
    }
    if (start || number == MDFS_IOC_OPERATION_RESUME)
      command->add_option("--budget", arguments->budget,
                          "Read and write at most so much a second: 50MiB. Default: no limit");
    if (number != MDFS_IOC_OPERATION_CANCEL) command->add_flag("--wait", arguments->wait, "Return when it has ended");
    command->add_flag("--json", arguments->json, "Print JSON");
    command
        ->add_option("PATH", arguments->path,
                     start ? "Mount point: everything; or one image or file" : "Mount point, or any file on the volume")
        ->required();
    command->callback([arguments, &action] { action = [arguments] { return defrag_command(*arguments); }; });
  };
  add("start", "Begin a defragmentation, which runs in the background", MDFS_IOC_OPERATION_START);
  add("status", "Show how far it is and what it brought", MDFS_IOC_OPERATION_STATUS);
  add("cancel", "Stop it", MDFS_IOC_OPERATION_CANCEL);
  add("resume", "Go on with one that was cancelled, or change its budget", MDFS_IOC_OPERATION_RESUME);
}

}  // namespace mdfs::tools
