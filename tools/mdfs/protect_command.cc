// mdfs image protect, mdfs disk rebuild.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text.h"
#include "commands.h"
#include "mdfs/ondisk.h"
#include "mounted.h"
#include "operation_text.h"
#include "protection.h"
#include "support/file.h"
#include "support/json_output.h"
#include "support/ranges.h"
#include "support/streams.h"
#include "volume_text.h"

namespace mdfs::tools {
namespace {

constexpr OperationWords kProtectWords = {"protection", "files examined", "copies made or removed", "damaged"};

enum ProtectFigure : std::size_t {
  kCopiesMade,
  kCopiesRepaired,
  kCopiesRemoved,
  kCopiesWithoutRoom,
  kCopiesWrittenBytes
};

// What a file is to have.
struct Setting {
  std::uint32_t copies = 0;         // 0: nothing is asked for
  std::uint32_t group_members = 0;  // that share a parity in place of copies; 0: none do
  std::uint32_t least_disks() const {
    if (copies < 2) return 1;
    return group_members == MDFS_IOC_PROTECTION_USUAL_GROUPS ? 3 : std::max(group_members, 1u) + 1;
  }
};

Error too_few_disks(const std::string& path, const Setting& setting) {
  if (setting.group_members == 0)
    return {Errc::kNotSupported, path + ": second copies need a volume of two disks or more for data"};
  return {Errc::kNotSupported,
          fmt::format("{}: this parity needs a volume of {} disks or more for data", path, setting.least_disks())};
}

Result<mdfs_ioc_protection> ask(const std::string& path, std::uint32_t action, const Setting& setting) {
  MDFS_TRY_ASSIGN(File file, File::open(path, O_RDONLY | O_NONBLOCK));  // a FIFO would wait for a writer
  mdfs_ioc_protection request{};
  request.struct_bytes = sizeof request;
  request.action = action;
  request.copies = setting.copies;
  request.group_members = setting.group_members;
  if (::ioctl(file.fd(), MDFS_IOC_PROTECTION, &request) != 0) {
    if (errno == EOPNOTSUPP) return too_few_disks(path, setting);
    return from_errno(errno, path + ": protection");
  }
  return request;
}

nlohmann::ordered_json figures_json(const mdfs_ioc_operation& operation) {
  return {{"made", operation.figures[kCopiesMade]},
          {"repaired", operation.figures[kCopiesRepaired]},
          {"removed", operation.figures[kCopiesRemoved]},
          {"no_room", operation.figures[kCopiesWithoutRoom]},
          {"written_bytes", operation.figures[kCopiesWrittenBytes]}};
}

// ---- image protect

struct ProtectArguments {
  std::vector<std::string> words;  // paths, and the setting
  bool recursive = false, dry_run = false, json = false;
};

Result<Setting> parse_setting(const std::string& word) {
  if (word == "copies=2") return Setting{2, 0};
  if (word == "none") return Setting{1, 0};
  if (word == "parity=1") return Setting{2, MDFS_IOC_PROTECTION_USUAL_GROUPS};
  for (const std::uint32_t width : {2u, 4u, 8u})
    if (word == fmt::format("parity=1,width={}", width)) return Setting{2, width};
  return Error{Errc::kUsage, word + ": the last word must be copies=2, parity=1, parity=1,width=2|4|8 or none"};
}

// All files and directories below. Links are not followed. A directory that goes meanwhile ends the walk.
std::error_code walk(const std::string& path, std::vector<std::string>& all) {
  std::error_code error;
  for (auto at = std::filesystem::recursive_directory_iterator(path, error);
       !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    std::error_code gone;
    if (const auto type = at->symlink_status(gone).type();
        type == std::filesystem::file_type::directory || type == std::filesystem::file_type::regular)
      all.push_back(at->path().string());
  }
  return error;
}

// The paths, and with `recursive` all files and directories below.
Result<std::vector<std::string>> all_paths(const std::vector<std::string>& paths, bool recursive) {
  constexpr unsigned kMostWalks = 10;
  std::vector<std::string> all;
  for (const std::string& path : paths) {
    all.push_back(path);
    std::error_code error;
    if (!recursive || !std::filesystem::is_directory(path, error)) continue;
    const std::size_t before = all.size();
    for (unsigned walks = 0; walks < kMostWalks; ++walks) {
      all.resize(before);
      error = walk(path, all);
      if (error != std::errc::no_such_file_or_directory) break;
    }
    if (error) return from_errno(error.value(), path);
  }
  return all;
}

struct Protected {
  std::string path;
  mdfs_ioc_protection now{};
  bool changes = false;
};

void print_result(const ProtectArguments& arguments, const std::vector<Protected>& all,
                  const std::optional<mdfs_ioc_operation>& ended, const std::string& path) {
  if (arguments.json) {
    nlohmann::ordered_json json;
    json["output_version"] = kOutputVersion;
    json["dry_run"] = arguments.dry_run;
    json["paths"] = nlohmann::ordered_json::array();
    for (const Protected& one : all) {
      json["paths"].push_back(protection_json(one.now));
      json["paths"].back()["path"] = one.path;
      json["paths"].back()["changes"] = one.changes;
    }
    json["operation"] =
        ended ? nlohmann::ordered_json::parse(operation_json(*ended, kProtectWords, path, figures_json(*ended)))
              : nlohmann::ordered_json();
    print_out("{}\n", dump_json(json));
    return;
  }
  for (const Protected& one : all)
    print_out("{}: {}{}\n", one.path, protection_text(one.now),
              arguments.dry_run && one.changes ? "; would change" : "");
}

const char* parts(const mdfs_ioc_protection& protection) { return protection.is_image != 0 ? "extents" : "cells"; }

// Of the paths alone: the operation is of the whole volume.
Status outcome_of_paths(const std::vector<Protected>& all, const Setting& setting, const mdfs_ioc_operation& ended) {
  const std::uint32_t copies = setting.copies;
  for (const Protected& one : all) {
    if (copies == 2 && one.now.copies == 2 && one.now.in_strips != 0 && one.now.is_converting == 0)
      return {Errc::kNoSpace,
              one.path + ": appended bytes in strips have one copy: free space, then mdfs disk rebuild"};
    const std::uint64_t wanted = copies == 2 ? one.now.extents : 0;
    if (one.now.is_directory != 0 || one.now.copies != copies || one.now.copied == wanted || one.now.is_converting != 0)
      continue;
    if (one.now.copied > wanted) return {Errc::kCorrupt, one.path + ": copies or parities could not be removed"};
    const char* const lacked = setting.group_members > 1 ? "copy or parity" : "second copy";
    const std::string without =
        fmt::format("{}: {} of {} {} have no {}", one.path, wanted - one.now.copied, wanted, parts(one.now), lacked);
    if (ended.figures[kCopiesWithoutRoom] > 0)
      return {Errc::kNoSpace, without + ": no other disk has room for it; free space, then mdfs disk rebuild"};
    return {Errc::kCorrupt, without + ": mdfs scrub start says what cannot be read"};
  }
  return {};
}

// Is the file protected like that already?
bool is_so(const mdfs_ioc_protection& now, const Setting& setting) {
  if (now.copies != setting.copies) return false;
  if (now.is_image == 0 && now.is_directory == 0) return true;  // parity is of images
  const std::uint32_t groups = now.group_members > 1 ? now.group_members : 0;
  return setting.group_members == MDFS_IOC_PROTECTION_USUAL_GROUPS ? groups != 0 : groups == setting.group_members;
}

Result<Protected> protect_path(const std::string& path, const Setting& setting, bool dry_run) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_protection before, ask(path, MDFS_IOC_PROTECTION_SHOW, {}));
  Protected one{path, before, !is_so(before, setting)};
  if (dry_run && setting.copies > 1 && one.changes) {
    MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(path));
    const std::vector<std::uint32_t> disks = disk_numbers(volume);
    const auto for_data =
        std::count_if(disks.begin(), disks.end(), [&](std::uint32_t i) { return volume.disks[i].weight > 0; });
    if (for_data < static_cast<std::ptrdiff_t>(setting.least_disks())) return too_few_disks(path, setting);
  }
  if (dry_run) return one;
  MDFS_TRY_ASSIGN(one.now, ask(path, MDFS_IOC_PROTECTION_SET, setting));
  return one;
}

// Not found below a directory, where it may be gone meanwhile.
bool is_named(const ProtectArguments& arguments, const std::string& path) {
  return std::find(arguments.words.begin(), arguments.words.end(), path) != arguments.words.end();
}

Status protect_command(const ProtectArguments& arguments) {
  if (arguments.words.size() < 2) return {Errc::kUsage, "give PATH, and copies=2, parity=1 or none as the last word"};
  MDFS_TRY_ASSIGN(const Setting setting, parse_setting(arguments.words.back()));
  const std::vector<std::string> named(arguments.words.begin(), arguments.words.end() - 1);
  MDFS_TRY_ASSIGN(const std::vector<std::string> paths, all_paths(named, arguments.recursive));
  if (!arguments.dry_run)  // nothing changes where a name is wrong
    for (const std::string& path : named) MDFS_TRY(protect_path(path, setting, true));
  std::vector<Protected> all;
  bool any_file = false;
  for (const std::string& path : paths) {
    auto one = protect_path(path, setting, arguments.dry_run);
    if (!one.ok() && arguments.recursive && one.error().code == Errc::kNotFound && !is_named(arguments, path)) continue;
    MDFS_TRY(one);
    any_file = any_file || (!arguments.dry_run && one->now.is_directory == 0);
    all.push_back(std::move(*one));
  }
  std::optional<mdfs_ioc_operation> ended;
  Status outcome;
  if (any_file) {
    MDFS_TRY_ASSIGN(ended, wait_for_operation(paths.front(), MDFS_OPERATION_PROTECT, kProtectWords));
    outcome = operation_outcome(*ended, kProtectWords);
    for (Protected& one : all) {
      const auto now = protection_of(one.path);
      if (!now.ok() && now.error().code == Errc::kNotFound && !is_named(arguments, one.path)) continue;
      MDFS_TRY_ASSIGN(one.now, now);
    }
    if (ended->state == MDFS_OPERATION_DONE) outcome = outcome_of_paths(all, setting, *ended);
  }
  print_result(arguments, all, ended, paths.front());
  return outcome;
}

// ---- disk rebuild

struct RebuildArguments {
  std::string path, budget;
  bool dry_run = false, cancel = false, json = false;
};

Status rebuild_command(const RebuildArguments& arguments) {
  if (arguments.cancel) {
    const auto cancelled =
        call_operation(arguments.path, operation_request(MDFS_OPERATION_PROTECT, MDFS_IOC_OPERATION_CANCEL));
    if (!cancelled.ok()) return cancelled.error();
    print_out("the rebuild was stopped; copies that were made stay\n");
    return {};
  }
  mdfs_ioc_operation asked = operation_request(MDFS_OPERATION_PROTECT, MDFS_IOC_OPERATION_START);
  asked.flags = arguments.dry_run ? MDFS_OPERATION_DRY_RUN : 0;
  if (!arguments.budget.empty()) {
    MDFS_TRY_ASSIGN(asked.budget_bytes_s, parse_budget(arguments.budget));
  }
  const auto started = call_operation(arguments.path, asked);
  if (!started.ok() && started.error().code == Errc::kBusy && arguments.dry_run)
    return {Errc::kBusy,
            arguments.path + ": copies are being made at the moment: count when mdfs disk rebuild is done"};
  if (!started.ok() && started.error().code != Errc::kBusy) return started.error();
  if (!started.ok()) {  // one that was interrupted, perhaps with another limit
    mdfs_ioc_operation resumed = operation_request(MDFS_OPERATION_PROTECT, MDFS_IOC_OPERATION_RESUME);
    resumed.budget_bytes_s = asked.budget_bytes_s != 0 ? asked.budget_bytes_s : MDFS_IOC_NO_BUDGET;
    const auto running = call_operation(arguments.path, resumed);
    if (!running.ok() && running.error().code != Errc::kNoData) return running.error();
  }
  MDFS_TRY_ASSIGN(const mdfs_ioc_operation ended,
                  wait_for_operation(arguments.path, MDFS_OPERATION_PROTECT, kProtectWords));
  if (arguments.json) {
    print_out("{}\n", operation_json(ended, kProtectWords, arguments.path, figures_json(ended)));
  } else if ((ended.flags & MDFS_OPERATION_DRY_RUN) != 0) {
    print_out("{} extents and cells would get or lose copies\n", ended.items_changed);
  } else {
    print_out("{} copies made, {} made anew in place of lost ones, {} removed; {} written\n",
              ended.figures[kCopiesMade], ended.figures[kCopiesRepaired], ended.figures[kCopiesRemoved],
              format_size(ended.figures[kCopiesWrittenBytes]));
  }
  MDFS_TRY(operation_outcome(ended, kProtectWords));
  if (ended.figures[kCopiesWithoutRoom] > 0)
    return {Errc::kNoSpace,
            fmt::format("{} extents and cells have no second copy: free space on other disks, and rebuild again",
                        ended.figures[kCopiesWithoutRoom])};
  return {};
}

}  // namespace

Result<mdfs_ioc_protection> protection_of(const std::string& path) { return ask(path, MDFS_IOC_PROTECTION_SHOW, {}); }

std::string protection_text(const mdfs_ioc_protection& protection) {
  const bool has_parity = protection.group_members > 1;
  std::string text = has_parity ? fmt::format("parity of {} extents", protection.group_members)
                                : fmt::format("copies {}", protection.copies);
  if (protection.is_directory != 0)
    return text + (has_parity               ? ", of new images; copies 2, of other new files"
                   : protection.copies == 2 ? ", of new files"
                                            : "");
  if (has_parity && protection.is_image == 0) text = "copies 2";
  const bool has_parts = protection.is_image != 0 || protection.extents > 0;  // a small file has none
  if (has_parts && (protection.copies == 2 || protection.copied > 0))
    text += fmt::format(", {} of {} {} {} ({} of {})", protection.copied, protection.extents, parts(protection),
                        has_parity || protection.grouped > 0 ? "survive a lost disk" : "have both",
                        format_size(protection.copied_bytes), format_size(protection.stored_bytes));
  if (protection.grouped > 0 || (has_parity && protection.is_image != 0))
    text += fmt::format(", {} by a parity", protection.grouped);
  if (protection.lost > 0)
    text +=
        fmt::format(", {} {} ({}) are lost", protection.lost, parts(protection), format_size(protection.lost_bytes));
  if (protection.copies == 2 && protection.in_strips != 0) text += ", appended bytes in strips have one copy";
  if (protection.is_converting != 0) text += ", being converted";
  return text;
}

nlohmann::ordered_json protection_json(const mdfs_ioc_protection& protection) {
  nlohmann::ordered_json json;
  json["copies"] = protection.copies;
  json["parity"] = protection.group_members > 1 ? 1 : 0;
  json["width"] = std::max(protection.group_members, 1u);
  json["is_image"] = protection.is_image != 0;
  json["is_directory"] = protection.is_directory != 0;
  json["extents"] = protection.extents;
  json["copied"] = protection.copied;
  json["stored_bytes"] = protection.stored_bytes;
  json["copied_bytes"] = protection.copied_bytes;
  json["grouped"] = protection.grouped;
  json["grouped_bytes"] = protection.grouped_bytes;
  json["lost"] = protection.lost;
  json["lost_bytes"] = protection.lost_bytes;
  json["in_strips"] = protection.in_strips != 0;
  json["converting"] = protection.is_converting != 0;
  return json;
}

std::optional<std::string> protecting_line(const std::string& path) {
  const auto now = call_operation(path, operation_request(MDFS_OPERATION_PROTECT, MDFS_IOC_OPERATION_STATUS));
  if (!now.ok() || (now->flags & MDFS_OPERATION_DRY_RUN) != 0) return std::nullopt;
  if (now->state == MDFS_OPERATION_RUNNING)
    return fmt::format("protection: {} files examined, {} written", now->items_done, format_size(now->bytes_done));
  if (now->figures[kCopiesWithoutRoom] == 0) return std::nullopt;
  return fmt::format(
      "protection: {} extents and cells lack their second copy: free space on other disks, then mdfs disk rebuild",
      now->figures[kCopiesWithoutRoom]);
}

std::optional<std::string> protecting_json(const std::string& path) {
  const auto now = call_operation(path, operation_request(MDFS_OPERATION_PROTECT, MDFS_IOC_OPERATION_STATUS));
  if (!now.ok()) return std::nullopt;
  return operation_json(*now, kProtectWords, path, figures_json(*now));
}

void add_protect_command(CLI::App& noun, Action& action) {
  const auto arguments = std::make_shared<ProtectArguments>();
  CLI::App* command = noun.add_subcommand(
      "protect", "Give images and files a second copy of all data or, to images, parities, or remove them");
  command->add_flag("--recursive", arguments->recursive, "Also all files and directories below a directory");
  command->add_flag("--dry-run", arguments->dry_run, "Show what would change");
  command->add_flag("--json", arguments->json, "Print JSON");
  command
      ->add_option("PATH", arguments->words,
                   "Files, and directories whose new files inherit; then copies=2, parity=1[,width=2|4|8] or none")
      ->required();
  command->callback([arguments, &action] { action = [arguments] { return protect_command(*arguments); }; });
}

void add_rebuild_command(CLI::App& noun, Action& action) {
  const auto arguments = std::make_shared<RebuildArguments>();
  CLI::App* command =
      noun.add_subcommand("rebuild", "Make copies and parities anew that are missing, or lie on lost disks");
  CLI::Option* const dry_run = command->add_flag("--dry-run", arguments->dry_run, "Count what would be made");
  CLI::Option* const budget = command->add_option(
      "--budget", arguments->budget, "Read and write at most this many bytes per second (default: no limit)");
  budget->check(not_empty());
  command->add_flag("--cancel", arguments->cancel, "Stop the rebuild; copies that were made stay")
      ->excludes(dry_run)
      ->excludes(budget);
  command->add_flag("--json", arguments->json, "Print JSON");
  command->add_option("PATH", arguments->path, "Mount point, or any file on the volume")->required();
  command->callback([arguments, &action] { action = [arguments] { return rebuild_command(*arguments); }; });
}

}  // namespace mdfs::tools
