// mdfs disk balance: disks that were added take their share of what is stored already.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "disk_command.h"
#include "mdfs/ondisk.h"
#include "mounted.h"
#include "operation_text.h"
#include "support/ranges.h"
#include "support/streams.h"
#include "support/text.h"
#include "volume_text.h"

namespace mdfs::tools {
namespace {

constexpr OperationWords kBalanceWords = {"balancing", "files and images examined", "extents moved", "damaged"};

enum BalanceFigure : std::size_t { kBytesMoved, kBytesWithoutRoom };

struct BalanceArguments {
  std::string path, budget;
  std::vector<std::string> disks;
  bool dry_run = false, cancel = false, json = false;
};

Result<mdfs_ioc_operation> balancing(const std::string& path) {
  return call_operation(path, operation_request(MDFS_OPERATION_BALANCE, MDFS_IOC_OPERATION_STATUS));
}

// Above this `mdfs defrag start` moves something; its default.
constexpr double kWorthDefragmenting = 1.1;

void print_defrag_hint(const std::string& path) {
  const std::optional<mdfs_ioc_fragmentation> fragmentation = volume_fragmentation(path);
  if (!fragmentation || fragmentation->images == 0 ||
      std::max(fragmentation->factor, fragmentation->imbalance) <= kWorthDefragmenting)
    return;
  print_out(
      "windows of images lie in {:.2f} times the runs of fresh copies, and keep the busiest disk {:.2f} times as "
      "long: mdfs defrag start {} would help\n",
      fragmentation->factor, fragmentation->imbalance, path);
}

// Files and images that leave out several disks are not known as meant for all when one of the disks is named alone.
void print_others_that_lack(const std::string& path) {
  mdfs_ioc_operation asked = operation_request(MDFS_OPERATION_BALANCE, MDFS_IOC_OPERATION_START);
  asked.flags = MDFS_OPERATION_DRY_RUN;
  asked.parameters[1] = 1;
  if (!call_operation(path, asked).ok()) return;
  const auto planned = wait_for_operation(path, MDFS_OPERATION_BALANCE, kBalanceWords);
  if (!planned.ok() || planned->figures[kBytesMoved] == 0) return;
  print_out("{} would move to all disks with too little: give no DISK\n", format_size(planned->figures[kBytesMoved]));
}

// What has ended.
Status report(const mdfs_ioc_operation& ended, const std::string& path, bool json) {
  const bool dry_run = (ended.flags & MDFS_OPERATION_DRY_RUN) != 0;
  if (json) {
    print_out("{}\n", operation_json(ended, kBalanceWords, path,
                                     {{"moved_bytes", ended.figures[kBytesMoved]},
                                      {"no_room", ended.figures[kBytesWithoutRoom]}}));
  } else {
    print_out("{} {}, in {} extents and pieces of files\n", format_size(ended.figures[kBytesMoved]),
              dry_run ? "would move" : "moved", ended.items_changed);
    if (ended.figures[kBytesWithoutRoom] > 0)
      print_out("{} stay where they are: there was no space, or another piece of them is there\n",
                ended.figures[kBytesWithoutRoom]);
    if (ended.parameters[0] == 0) print_out("every disk has its share\n");
    if (!dry_run && ended.figures[kBytesMoved] > 0) print_defrag_hint(path);
  }
  return operation_outcome(ended, kBalanceWords);
}

Status cancel(const std::string& path) {
  const auto cancelled = call_operation(path, operation_request(MDFS_OPERATION_BALANCE, MDFS_IOC_OPERATION_CANCEL));
  if (!cancelled.ok()) return cancelled.error();
  print_out("balancing was stopped; moved data stay where they are\n");
  return {};
}

Status balance(const BalanceArguments& arguments) {
  if (arguments.cancel) return cancel(arguments.path);
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(arguments.path));
  std::vector<std::uint32_t> numbers;
  for (const std::string& disk : arguments.disks) {
    MDFS_TRY_ASSIGN(const std::uint32_t number, find_disk(volume, disk));
    numbers.push_back(number);
  }
  return balance_onto(arguments.path, numbers, numbers.empty(), arguments.budget, arguments.dry_run, arguments.json);
}

std::uint64_t bits_of(const std::vector<std::uint32_t>& disks) {
  std::uint64_t bits = 0;
  for (const std::uint32_t disk : disks) bits |= std::uint64_t{1} << disk;
  return bits;
}

}  // namespace

Status balance_onto(const std::string& path, const std::vector<std::uint32_t>& disks, bool all_lacking,
                    const std::string& budget, bool dry_run, bool json) {
  mdfs_ioc_operation asked = operation_request(MDFS_OPERATION_BALANCE, MDFS_IOC_OPERATION_START);
  asked.flags = dry_run ? MDFS_OPERATION_DRY_RUN : 0;
  if (!budget.empty()) {
    MDFS_TRY_ASSIGN(asked.budget_bytes_s, parse_budget(budget));
  }
  asked.parameters[0] = bits_of(disks);
  asked.parameters[1] = all_lacking ? 1 : 0;
  const auto started = call_operation(path, asked);
  if (!started.ok() && started.error().code == Errc::kBusy) {
    MDFS_TRY_ASSIGN(const mdfs_ioc_operation now, balancing(path));
    const bool same_disks = all_lacking ? (now.parameters[0] & asked.parameters[0]) == asked.parameters[0]
                                        : now.parameters[0] == asked.parameters[0];
    const bool same = (now.flags & MDFS_OPERATION_DRY_RUN) == asked.flags && same_disks;
    if (!same) return {Errc::kBusy, "disks are already being balanced: wait for it, or give --cancel"};
  } else if (!started.ok()) {
    return started.error();
  }
  MDFS_TRY_ASSIGN(const mdfs_ioc_operation ended, wait_for_operation(path, MDFS_OPERATION_BALANCE, kBalanceWords));
  const Status outcome = report(ended, path, json);
  if (outcome.ok() && !json && !all_lacking && ended.figures[kBytesMoved] == 0) print_others_that_lack(path);
  return outcome;
}

std::optional<std::string> balancing_line(const std::string& path) {
  const auto now = balancing(path);
  if (!now.ok() || now->state != MDFS_OPERATION_RUNNING || (now->flags & MDFS_OPERATION_DRY_RUN) != 0)
    return std::nullopt;
  const auto left = operation_eta_s(*now);
  return fmt::format("balancing onto disk {}: {} of about {}{}", fmt::join(disk_numbers(now->parameters[0]), ", "),
                     format_size(now->bytes_done), format_size(now->bytes_total),
                     left ? ", about " + duration_text(*left) + " left" : std::string());
}

std::optional<std::string> balancing_json(const std::string& path) {
  const auto now = balancing(path);
  if (!now.ok() || now->state != MDFS_OPERATION_RUNNING) return std::nullopt;
  return operation_json(*now, kBalanceWords, path, {{"onto", disk_numbers(now->parameters[0])}});
}

void add_balance_command(CLI::App& noun, Action& action) {
  const auto arguments = std::make_shared<BalanceArguments>();
  CLI::App* command = noun.add_subcommand("balance", "Move stored data to disks with less than their share");
  command->add_flag("--dry-run", arguments->dry_run, "Show how much would move");
  command
      ->add_option("--budget", arguments->budget,
                   "Read and write at most this many bytes per second (default: no limit)")
      ->check(not_empty());
  command->add_flag("--cancel", arguments->cancel, "Stop balancing; moved data stay where they are");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->add_option("PATH", arguments->path, "Mount point, or any file on the volume")->required();
  command->add_option("DISK", arguments->disks,
                      "Numbers, paths or UUIDs of the receiving disks (default: all with less than their share)");
  command->callback([arguments, &action] { action = [arguments] { return balance(*arguments); }; });
}

}  // namespace mdfs::tools
