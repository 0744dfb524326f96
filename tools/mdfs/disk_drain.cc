// mdfs disk remove, replace: drain a disk of a volume in use, and remove it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "device/rados/rados_name.h"
#include "disk_command.h"
#include "mdfs/ondisk.h"
#include "mounted.h"
#include "operation_text.h"
#include "support/cluster_options.h"
#include "support/ranges.h"
#include "support/streams.h"
#include "support/text.h"
#include "volume_text.h"

namespace mdfs::tools {
namespace {

constexpr std::size_t kShownInodes = 8;
constexpr OperationWords kDrainWords = {"draining of the disk", "files and images examined", "extents moved", "stay"};

struct DrainArguments {
  std::string path, disk, replacement, budget;
  NewDiskOptions made;
  bool dry_run = false, cancel = false, json = false;
};

std::string disk_text(const mdfs_ioc_volume& volume, std::uint32_t disk) {
  const std::string path = text_of(volume.disks[disk].name);
  return path.empty() ? fmt::format("disk {}", disk) : fmt::format("disk {} ({})", disk, path);
}

// A disk in a cluster that has left the volume: how its room is freed.
void print_leftovers(const mdfs_ioc_volume& volume, std::uint32_t disk) {
  const auto name = device::RadosName::parse(text_of(volume.disks[disk].name));
  if (!name.ok()) return;
  const std::string space = name->name_space.empty() ? "" : "-N " + name->name_space + " ";
  print_out("its objects stay in the cluster: {} and {}.*, of 'rados -p {} {}ls'; 'rados rm' frees their room\n",
            name->name, name->name, name->pool, space);
}

// Until it is over, with a bar on a terminal. After an interrupt the work continues in the daemon.
Status watch(const DrainArguments& arguments) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_operation ended,
                  wait_for_operation(arguments.path, MDFS_OPERATION_DRAIN, kDrainWords));
  if (arguments.json) print_out("{}\n", operation_json(ended, kDrainWords, arguments.path, nullptr));
  if (ended.state == MDFS_OPERATION_CANCELLED)
    return {Errc::kCancelled,
            "the drain was stopped, and the disk is still in the volume: remove it again, or keep it with --cancel"};
  if (ended.state != MDFS_OPERATION_DONE) {
    const Error error = operation_error(ended);
    return {error.code, error.where + stuck_text(ended)};
  }
  if (!arguments.json) print_out("{} moved\n", format_size(ended.bytes_total));
  return {};
}

Result<mdfs_ioc_operation> drain_status(const std::string& path) {
  return call_operation(path, operation_request(MDFS_OPERATION_DRAIN, MDFS_IOC_OPERATION_STATUS));
}

Error being_resized(const std::string& path, std::uint64_t disk) {
  return {Errc::kBusy, fmt::format("disk {1} is being shrunk; nothing was changed: wait for it, or stop it with mdfs "
                                   "disk resize --cancel {0} {1}",
                                   path, disk)};
}

// Is that what the daemon is doing just now?
bool is_under_way(const DrainArguments& arguments, std::uint32_t disk, std::optional<std::uint32_t> target) {
  const auto now = drain_status(arguments.path);
  return now.ok() && now->state == MDFS_OPERATION_RUNNING && (now->flags & MDFS_OPERATION_DRY_RUN) == 0 &&
         now->parameters[0] == disk && now->parameters[1] == (target ? *target + 1u : 0u) && now->parameters[2] == 0;
}

Result<mdfs_ioc_operation> start(const DrainArguments& arguments, std::uint32_t disk,
                                 std::optional<std::uint32_t> target) {
  mdfs_ioc_operation asked = operation_request(MDFS_OPERATION_DRAIN, MDFS_IOC_OPERATION_START);
  asked.flags = arguments.dry_run ? MDFS_OPERATION_DRY_RUN : 0;
  if (!arguments.budget.empty()) {
    MDFS_TRY_ASSIGN(asked.budget_bytes_s, parse_budget(arguments.budget));
  }
  asked.parameters[0] = disk;
  asked.parameters[1] = target ? *target + 1 : 0;
  return call_operation(arguments.path, asked);
}

// The error of the daemon is an errno: what it means here.
Error explained(const Error& error, const std::string& path, const mdfs_ioc_volume& volume, std::uint32_t disk) {
  if (error.code == Errc::kBusy) {
    const auto now = drain_status(path);
    if (now.ok() && now->state == MDFS_OPERATION_RUNNING && now->parameters[2] != 0)
      return being_resized(path, now->parameters[0]);
    return {Errc::kBusy, "a disk is already being drained: wait for it, or give --cancel with that disk"};
  }
  if (error.code == Errc::kNotEmpty)
    return {
        Errc::kNotSupported,
        fmt::format("one disk for data would be left beside {}, and files on the volume are protected: copies (mdfs "
                    "image protect) need two disks. Add a disk first, or give them up: mdfs image protect PATH none",
                    disk_text(volume, disk))};
  if (error.code != Errc::kNoSpace) return error;
  if (disk_numbers(volume).size() == 1) return {Errc::kNoSpace, "the volume has no other disk"};
  const auto& source = volume.disks[disk];
  const std::uint64_t used = source.blocks - source.free_blocks;
  const std::uint64_t own = state_name(source.state) == "healthy" ? source.free_blocks : 0;
  const std::uint64_t room = volume.available_blocks - std::min(volume.available_blocks, own);
  return {Errc::kNoSpace, fmt::format("the other disks have too little space, {}, for the data on {}, {}: add a disk, "
                                      "or delete files",
                                      format_size(room * volume.block_size), disk_text(volume, disk),
                                      format_size(used * volume.block_size))};
}

// Starts it, or finds it under way after an interruption, and waits.
Status drain(const DrainArguments& arguments, const mdfs_ioc_volume& volume, std::uint32_t disk,
             std::optional<std::uint32_t> target) {
  if (!is_under_way(arguments, disk, target)) {
    const auto started = start(arguments, disk, target);
    if (!started.ok()) return explained(started.error(), arguments.path, volume, disk);
  } else if (!arguments.budget.empty()) {
    mdfs_ioc_operation asked = operation_request(MDFS_OPERATION_DRAIN, MDFS_IOC_OPERATION_RESUME);
    MDFS_TRY_ASSIGN(asked.budget_bytes_s, parse_budget(arguments.budget));
    const auto resumed = call_operation(arguments.path, asked);
    if (!resumed.ok() && resumed.error().code != Errc::kNoData) return resumed.error();
  }
  return watch(arguments);
}

// What has to move, and whether it can.
Status dry_run(const DrainArguments& arguments, const mdfs_ioc_volume& volume, std::uint32_t disk) {
  const auto planned = start(arguments, disk, std::nullopt);
  if (!planned.ok()) return explained(planned.error(), arguments.path, volume, disk);
  const std::string state = state_name(volume.disks[disk].state);
  if (arguments.json)
    print_out("{}\n", operation_json(*planned, kDrainWords, arguments.path, nullptr));
  else if (state == "stale")
    print_out("{} is stale: its readable data would move; their size is unknown\n", disk_text(volume, disk));
  else if (!is_readable(volume.disks[disk].state))
    print_out("{} is {}: no data can move off it; its removal lists the files with lost data\n",
              disk_text(volume, disk), state);
  else
    print_out("{}: {} would move\n", disk_text(volume, disk), format_size(planned->bytes_total));
  return {};
}

Status cancel(const DrainArguments& arguments, const mdfs_ioc_volume& volume, std::uint32_t disk) {
  const auto now = drain_status(arguments.path);
  if (now.ok() && now->state == MDFS_OPERATION_RUNNING) {
    if (now->parameters[2] != 0)
      return {Errc::kInvalidArgument,
              fmt::format("disk {} is being shrunk; no disk is being drained", now->parameters[0])};
    if (now->parameters[0] != disk)
      return {Errc::kInvalidArgument, fmt::format("disk {} is being drained, not disk {}", now->parameters[0], disk)};
    const auto cancelled =
        call_operation(arguments.path, operation_request(MDFS_OPERATION_DRAIN, MDFS_IOC_OPERATION_CANCEL));
    if (!cancelled.ok() && cancelled.error().code != Errc::kNoData) return cancelled.error();
  }
  MDFS_TRY_ASSIGN(fuse::ControlClient daemon, daemon_of(volume));
  MDFS_TRY(daemon.change({fmt::format("keep {}", disk)}, {}));
  print_out("{} stays; moved data stay where they are\n", disk_text(volume, disk));
  return {};
}

Status remove(const DrainArguments& arguments) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(arguments.path));
  MDFS_TRY_ASSIGN(const std::uint32_t disk, find_disk(volume, arguments.disk));
  if (arguments.cancel && (arguments.dry_run || !arguments.budget.empty()))
    return {Errc::kUsage, "--cancel excludes --dry-run and --budget"};
  if (arguments.cancel) return cancel(arguments, volume, disk);
  if (arguments.dry_run) return dry_run(arguments, volume, disk);
  MDFS_TRY(drain(arguments, volume, disk, std::nullopt));
  if (arguments.json) return {};
  print_out("{} was removed from the volume\n", disk_text(volume, disk));
  print_leftovers(volume, disk);
  return {};
}

// The last run was, or is, to drain the one onto the other.
bool was_asked_for(const DrainArguments& arguments, std::uint32_t disk, std::uint32_t target) {
  const auto last = drain_status(arguments.path);
  return last.ok() && (last->flags & MDFS_OPERATION_DRY_RUN) == 0 && last->parameters[0] == disk &&
         last->parameters[1] == target + 1u;
}

// The number of the new disk; one that joined for that, before an interruption, is taken as it is.
Result<std::uint32_t> join_replacement(const DrainArguments& arguments, const mdfs_ioc_volume& volume,
                                       std::uint32_t disk) {
  if (const auto member = find_disk(volume, arguments.replacement); member.ok()) {
    if (*member == disk) return Error{Errc::kInvalidArgument, "a disk cannot replace itself"};
    if (was_asked_for(arguments, disk, *member)) return *member;
    return Error{
        Errc::kExists,
        arguments.replacement +
            ": is already a disk of this volume; mdfs disk remove moves the data of the old one to all others"};
  }
  // Before anything changes: the volume drains one disk at a time.
  std::optional<std::uint64_t> drained;
  for (const std::uint32_t other : disk_numbers(volume))
    if (other != disk && is_draining(volume.disks[other].state)) drained = other;
  const auto now = drain_status(arguments.path);
  if (now.ok() && now->state == MDFS_OPERATION_RUNNING && (now->flags & MDFS_OPERATION_DRY_RUN) == 0)
    drained = now->parameters[0];
  if (drained && now.ok() && now->parameters[2] != 0) return being_resized(arguments.path, *drained);
  if (drained)
    return Error{Errc::kBusy,
                 fmt::format("disk {0} is being drained; nothing was changed: wait for it, or stop it with "
                             "mdfs disk remove --cancel {1} {0}",
                             *drained, arguments.path)};
  AddArguments joining;
  joining.path = arguments.path;
  joining.disks = {arguments.replacement};
  joining.metadata = volume.disks[disk].weight == 0;
  joining.weight = static_cast<std::uint16_t>(volume.disks[disk].weight);
  joining.dry_run = arguments.dry_run;
  joining.made = arguments.made;
  MDFS_TRY_ASSIGN(const std::vector<NewDisk> joined, join(volume, joining));
  if (!arguments.json) print_new_disks(joined);
  return joined.front().number.value_or(disk);
}

// A command that was interrupted is given again, when the drain has ended meanwhile: the number of the new disk.
std::optional<std::uint32_t> has_replaced(const DrainArguments& arguments, const mdfs_ioc_volume& volume) {
  const auto target = find_disk(volume, arguments.replacement);
  const auto last = drain_status(arguments.path);
  const bool done = target.ok() && last.ok() && last->state == MDFS_OPERATION_DONE &&
                    (last->flags & MDFS_OPERATION_DRY_RUN) == 0 && last->parameters[1] == *target + 1u;
  return done ? std::optional(*target) : std::nullopt;
}

Status replace(const DrainArguments& arguments) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(arguments.path));
  const Result<std::uint32_t> found = find_disk(volume, arguments.disk);
  if (const auto target = found.ok() ? std::nullopt : has_replaced(arguments, volume); target) {
    MDFS_TRY_ASSIGN(const mdfs_ioc_operation last, drain_status(arguments.path));
    if (arguments.json)
      print_out("{}\n", operation_json(last, kDrainWords, arguments.path, nullptr));
    else
      print_out("disk {} ({}) has replaced {} already\n", *target, arguments.replacement, arguments.disk);
    return {};
  }
  MDFS_TRY_ASSIGN(const std::uint32_t disk, found);
  MDFS_TRY_ASSIGN(const std::uint32_t target, join_replacement(arguments, volume, disk));
  if (arguments.dry_run) {
    const std::uint64_t used = volume.disks[disk].blocks - volume.disks[disk].free_blocks;
    print_out("would move at most {} from {} to {}\n", format_size(used * volume.block_size), disk_text(volume, disk),
              arguments.replacement);
    return {};
  }
  if (const Status drained = drain(arguments, volume, disk, target); !drained.ok())
    return {drained.error().code,
            fmt::format("{} ({} is disk {} of the volume now)", drained.error().where, arguments.replacement, target)};
  if (arguments.json) return {};
  print_out("disk {} ({}) has replaced {}\n", target, arguments.replacement, disk_text(volume, disk));
  print_leftovers(volume, disk);
  return {};
}

}  // namespace

std::string stuck_text(const mdfs_ioc_operation& operation) {
  std::set<std::uint64_t> inodes;
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(operation.error_count, MDFS_IOC_MAX_ERRORS); ++i)
    if (operation.errors[i].object != 0) inodes.insert(operation.errors[i].object);
  if (inodes.empty()) return "";
  const auto last = std::next(inodes.begin(), static_cast<std::ptrdiff_t>(std::min(inodes.size(), kShownInodes)));
  const std::string more = last == inodes.end() ? "" : ", and more";
  return fmt::format("; inodes {}{}", fmt::join(inodes.begin(), last, " "), more);
}

std::optional<std::string> drain_json(const mdfs_ioc_volume& volume, const std::string& path) {
  for (const std::uint32_t i : disk_numbers(volume))
    if (const auto now = drain_status(path); is_draining(volume.disks[i].state) && now.ok())
      return operation_json(*now, kDrainWords, path, {{"disk", now->parameters[0]}});
  return std::nullopt;
}

std::vector<std::string> drain_lines(const mdfs_ioc_volume& volume, const std::string& path) {
  std::vector<std::string> lines;
  for (const std::uint32_t i : disk_numbers(volume)) {
    if (!is_draining(volume.disks[i].state)) continue;
    const auto now = drain_status(path);
    if (now.ok() && now->state == MDFS_OPERATION_RUNNING && now->parameters[0] == i) {
      const auto left = operation_eta_s(*now);
      lines.push_back(fmt::format("disk {} is being drained: {} of {}{}", i, format_size(now->bytes_done),
                                  format_size(now->bytes_total),
                                  left ? ", about " + duration_text(*left) + " left" : std::string()));
    } else {
      const std::string why = now.ok() && now->parameters[0] == i && now->reason[0] != '\0'
                                  ? " (" + text_of(now->reason) + stuck_text(*now) + ")"
                                  : "";
      lines.push_back(
          fmt::format("the drain of disk {0} has stopped{1}: resume it with mdfs disk remove {2} {0}, or keep the disk "
                      "with mdfs disk remove --cancel {2} {0}",
                      i, why, shell_word(path)));
    }
  }
  return lines;
}

void add_drain_commands(CLI::App& noun, Action& action) {
  const auto given = std::make_shared<DrainArguments>();
  CLI::App* command = noun.add_subcommand("remove", "Drain a disk and remove it from the volume");
  command->add_flag("--dry-run", given->dry_run, "Show how much would move, and whether there is space for it");
  command
      ->add_option("--budget", given->budget, "Read and write at most this many bytes per second (default: no limit)")
      ->check(not_empty());
  command->add_flag("--cancel", given->cancel, "Stop draining the disk, and keep it");
  command->add_flag("--json", given->json, "Print JSON");
  command->add_option("PATH", given->path, "Mount point, or any file on the volume")->required();
  command->add_option("DISK", given->disk, "Number, path or UUID of a disk of the volume")->required();
  command->callback([given, &action] { action = [given] { return remove(*given); }; });

  const auto replaced = std::make_shared<DrainArguments>();
  command = noun.add_subcommand("replace", "Replace a disk with a new one");
  command->add_flag("--dry-run", replaced->dry_run, "Check everything, but change nothing");
  add_cluster_options(*command);
  command
      ->add_option("--budget", replaced->budget,
                   "Read and write at most this many bytes per second (default: no limit)")
      ->check(not_empty());
  add_new_disk_options(*command, replaced->made);
  command->add_flag("--force", replaced->made.force, "Use a new disk that holds data; its contents are lost");
  command->add_flag("--json", replaced->json, "Print JSON");
  command->add_option("PATH", replaced->path, "Mount point, or any file on the volume")->required();
  command->add_option("OLD", replaced->disk, "Number, path or UUID of a disk of the volume")->required();
  command->add_option("NEW", replaced->replacement, "Block device, file or rados:POOL[/NAMESPACE]/NAME")->required();
  command->callback([replaced, &action] { action = [replaced] { return replace(*replaced); }; });
}

}  // namespace mdfs::tools
