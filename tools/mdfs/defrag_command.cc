// mdfs defrag start, status, cancel and resume.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "mdfs/ondisk.h"
#include "operation_command.h"
#include "support/ranges.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

// What figures[] of a defragmentation are, in order (src/maintenance/defrag.h).
enum Figure : std::uint8_t { kSeen, kMovedBytes, kNoRoom, kChanged, kRunsBefore, kRunsAfter, kRunsFresh, kCleared };

double ratio(std::uint64_t of, std::uint64_t to) {
  return to == 0 ? 0 : static_cast<double>(of) / static_cast<double>(to);
}

double factor_before(const mdfs_ioc_operation& now) { return ratio(now.figures[kRunsBefore], now.figures[kRunsFresh]); }
double factor_after(const mdfs_ioc_operation& now) { return ratio(now.figures[kRunsAfter], now.figures[kRunsFresh]); }

nlohmann::ordered_json more_json(const mdfs_ioc_operation& now) {
  return {{"threshold", static_cast<double>(now.threshold) / 1000},
          {"seen", now.figures[kSeen]},
          {"moved_bytes", now.figures[kMovedBytes]},
          {"cleared_bytes", now.figures[kCleared]},
          {"no_room", now.figures[kNoRoom]},
          {"changed_meanwhile", now.figures[kChanged]},
          {"factor_before", factor_before(now)},
          {"factor_after", factor_after(now)}};
}

std::string more_text(const mdfs_ioc_operation& now) {
  const bool dry_run = (now.flags & MDFS_OPERATION_DRY_RUN) != 0;
  std::string text = fmt::format("  {} examined, {} with a fragmentation or imbalance factor above {:.2f}; {} {}\n",
                                 now.figures[kSeen], now.items_total, static_cast<double>(now.threshold) / 1000,
                                 format_size(now.figures[kMovedBytes]), dry_run ? "would be moved" : "moved");
  if (now.figures[kCleared] > 0)
    text += fmt::format("  {} of other data moved out of the way of groups without a contiguous hole\n",
                        format_size(now.figures[kCleared]));
  if (now.figures[kNoRoom] > 0) text += fmt::format("  {} groups found no contiguous hole\n", now.figures[kNoRoom]);
  if (now.figures[kChanged] > 0)
    text += fmt::format("  {} extents were written during their move and stay in place\n", now.figures[kChanged]);
  if (now.figures[kRunsFresh] > 0)
    text += fmt::format("  fragmentation factor of the moved objects: {:.2f} before, {:.2f} now\n", factor_before(now),
                        factor_after(now));
  return text;
}

// --threshold, and whether the path is the volume or one object.
OperationNoun::Prepare add_start_options(CLI::App& start) {
  const auto threshold = std::make_shared<double>(0);
  start
      .add_option("--threshold", *threshold,
                  "Move only objects whose fragmentation or imbalance factor exceeds this (default: 1.1)")
      ->check(number_from(1, 1000));
  return [threshold](const std::string& path, mdfs_ioc_operation& request) -> Status {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) return from_errno(errno, path);
    if (S_ISREG(found.st_mode)) request.flags |= MDFS_OPERATION_OBJECT;
    request.threshold = static_cast<std::uint64_t>(std::llround(*threshold * 1000));
    return {};
  };
}

}  // namespace

void add_defrag_commands(CLI::App& app, Action& action) {
  OperationNoun defrag{};
  defrag.name = "defrag";
  defrag.summary = "Move fragmented images and files to contiguous blocks";
  defrag.kind = MDFS_OPERATION_DEFRAG;
  defrag.words = {"defragmentation", "images and files done", "groups moved", "damaged"};
  defrag.start = "Start a defragmentation in the background";
  defrag.status = "Show progress and result of the defragmentation";
  defrag.dry_run = "Count what would move, but move nothing";
  defrag.budget = "Read and write at most this much per second, such as 50MiB (default: no limit)";
  defrag.start_path = "Mount point for the whole volume, or an image or file";
  defrag.start_options = add_start_options;
  defrag.more_text = more_text;
  defrag.more_json = more_json;
  add_operation_commands(app, action, defrag);
}

}  // namespace mdfs::tools
