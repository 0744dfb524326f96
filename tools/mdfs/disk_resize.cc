// mdfs disk resize: a disk of a mounted volume gets another size.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "base/text.h"
#include "device/find_disks.h"
#include "device/open.h"
#include "disk_command.h"
#include "format/label.h"
#include "format/layout.h"
#include "mdfs/ondisk.h"
#include "mounted.h"
#include "operation_text.h"
#include "support/cluster_options.h"
#include "support/command.h"
#include "support/json_output.h"
#include "support/streams.h"
#include "support/text.h"
#include "volume_text.h"

namespace mdfs::tools {
namespace {

constexpr OperationWords kResizeWords = {"change of the size", "files and images examined", "extents moved", "stay"};

struct ResizeArguments {
  std::string path, disk, size, budget;
  bool dry_run = false, cancel = false, json = false;
};

// What the disk is now, and which sizes it could have.
struct Sizes {
  std::uint32_t number = 0;
  std::string path;
  std::uint32_t block_size = 0;
  std::uint64_t now = 0, least = 0, device = 0, room = 0;  // blocks

  std::uint64_t most() const { return std::min(device, room); }
  std::uint64_t least_change() const { return 2 * MDFS_LABEL_AREA / block_size; }
  std::string text(std::uint64_t blocks) const { return format_size(blocks * block_size); }
};

Result<Sizes> sizes_of(const mdfs_ioc_volume& volume, std::uint32_t number) {
  const auto& disk = volume.disks[number];
  Sizes sizes{number, text_of(disk.name), volume.block_size, disk.blocks, 0, 0, 0};
  if (state_name(disk.state) == "failed" && disk.device_bytes < disk.blocks * volume.block_size)
    return Error{Errc::kInvalidArgument,
                 fmt::format("{} has {}, less than disk {}, which has {}: data behind its end are lost, unless the "
                             "device gets back its size and contents",
                             sizes.path, format_size(disk.device_bytes), number, sizes.text(sizes.now))};
  if (state_name(disk.state) != "healthy")
    return Error{Errc::kInvalidArgument,
                 fmt::format("disk {} is {}: its size cannot be changed", number, state_name(disk.state))};
  MDFS_TRY_ASSIGN(const format::Label label, device::read_label(sizes.path));
  if (uuid_text(disk.uuid) != label.disk_uuid.to_string())
    return Error{Errc::kForeignDisk, fmt::format("{} is not disk {} of this volume", sizes.path, number)};
  MDFS_TRY_ASSIGN(const auto ring, device::UringContext::create());
  MDFS_TRY_ASSIGN(const auto device, device::open_disk(sizes.path, device::OpenMode::kLook, ring));
  sizes.least = format::least_blocks(label);
  sizes.room = label.room_blocks;
  sizes.device = format::disk_blocks(volume.block_size, device->size_bytes());
  return sizes;
}

// In blocks: whole label areas, never more than were asked for, since the device may be cut there. The labels of the
// old and of the new end must not overlap: a disk that is to be smaller by one area becomes smaller by two.
Result<std::uint64_t> wanted_blocks(const ResizeArguments& arguments, const Sizes& sizes) {
  if (arguments.size == "max") return sizes.most();
  MDFS_TRY_ASSIGN(const std::uint64_t bytes, parse_size(arguments.size, "SIZE"));
  const std::uint64_t blocks = format::disk_blocks(sizes.block_size, bytes);
  if (blocks >= sizes.now) return blocks;
  return std::min(blocks, sizes.now - std::min(sizes.now, sizes.least_change()));
}

// `typed`: the size as the user wrote it.
Status check_wanted(const Sizes& sizes, const std::string& typed, std::uint64_t blocks) {
  if (blocks < sizes.least)
    return {Errc::kUsage,
            fmt::format("SIZE {}: disk {} must have at least {}", typed, sizes.number, sizes.text(sizes.least))};
  if (blocks > sizes.room)
    return {Errc::kUsage,
            fmt::format("SIZE {}: disk {} can grow to at most {} (mkmdfs --grow-to); add another disk, or "
                        "replace this one by a larger one",
                        typed, sizes.number, sizes.text(sizes.room))};
  if (blocks > sizes.device)
    return {Errc::kUsage, fmt::format("SIZE {}: {} has {}: make it larger first (truncate -s, lvextend)", typed,
                                      sizes.path, sizes.text(sizes.device))};
  return {};
}

// A disk in a cluster is made larger here; others were made so by other programs.
Status enlarge(const ResizeArguments& arguments, Sizes& sizes) {
  if (device::is_path(sizes.path) || arguments.size == "max") return {};
  MDFS_TRY_ASSIGN(const std::uint64_t bytes, parse_size(arguments.size, "SIZE"));
  const std::uint64_t blocks = format::disk_blocks(sizes.block_size, bytes);
  if (blocks <= sizes.device || blocks > sizes.room) return {};
  if (!arguments.dry_run) MDFS_TRY(device::grow_disk(sizes.path, align_down(bytes, device::kAlignment)));
  sizes.device = blocks;
  return {};
}

Result<mdfs_ioc_operation> start(const ResizeArguments& arguments, const Sizes& sizes, std::uint64_t blocks) {
  mdfs_ioc_operation asked = operation_request(MDFS_OPERATION_DRAIN, MDFS_IOC_OPERATION_START);
  asked.flags = arguments.dry_run ? MDFS_OPERATION_DRY_RUN : 0;
  if (!arguments.budget.empty()) {
    MDFS_TRY_ASSIGN(asked.budget_bytes_s, parse_budget(arguments.budget));
  }
  asked.parameters[0] = sizes.number;
  asked.parameters[2] = blocks;
  return call_operation(arguments.path, asked);
}

Error explained(const Error& error, const Sizes& sizes, std::uint64_t blocks) {
  if (error.code == Errc::kBusy)
    return {Errc::kBusy, "a disk of this volume is already being drained or shrunk: wait for it, or cancel it"};
  if ((error.code == Errc::kIo || error.code == Errc::kNoSpace) && blocks > sizes.now)
    return {error.code, fmt::format("the end of {} cannot be written, so disk {} keeps its {}: the log says why; a "
                                    "sparse file needs space on its filesystem",
                                    sizes.path, sizes.number, sizes.text(sizes.now))};
  if (error.code == Errc::kNoSpace)
    return {Errc::kNoSpace, fmt::format("data behind the first {} of disk {} have no space elsewhere: delete files, "
                                        "or add a disk",
                                        sizes.text(blocks), sizes.number)};
  return error;
}

// Bytes: what it has now.
nlohmann::ordered_json members(const Sizes& sizes, std::uint64_t asked, std::uint64_t blocks) {
  return {{"disk", sizes.number},
          {"bytes_before", sizes.now * sizes.block_size},
          {"bytes_asked", asked * sizes.block_size},
          {"bytes", blocks * sizes.block_size}};
}

// Nothing had to be done: what a run that is over prints, but for times.
std::string unchanged_json(const Sizes& sizes, std::uint64_t blocks) {
  nlohmann::ordered_json json = {{"output_version", kOutputVersion}, {"state", "done"}, {"bytes_total", 0}};
  json.update(members(sizes, blocks, sizes.now));
  return dump_json(json);
}

Status watch(const ResizeArguments& arguments, const Sizes& sizes, std::uint64_t blocks) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_operation ended,
                  wait_for_operation(arguments.path, MDFS_OPERATION_DRAIN, kResizeWords));
  if (arguments.json)
    print_out("{}\n", operation_json(ended, kResizeWords, arguments.path,
                                     members(sizes, blocks, ended.state == MDFS_OPERATION_DONE ? blocks : sizes.now)));
  if (ended.state == MDFS_OPERATION_CANCELLED)
    return {Errc::kCancelled,
            fmt::format("stopped; disk {} has its {}, as before", sizes.number, sizes.text(sizes.now))};
  if (ended.state != MDFS_OPERATION_DONE) {
    const Error error = operation_error(ended);
    if (error.code == Errc::kNoSpace)
      return {error.code,
              error.where + ": other data have filled the volume; delete files, or add a disk, and try again"};
    return {error.code, error.where + stuck_text(ended)};
  }
  if (arguments.json) return {};
  if (blocks < sizes.now) print_out("{} moved\n", format_size(ended.bytes_total));
  print_out("disk {} ({}) has {}, before {}\n", sizes.number, sizes.path, sizes.text(blocks), sizes.text(sizes.now));
  if (blocks < sizes.now)
    print_out("bytes from {} on of {} are not used any more\n", blocks * sizes.block_size, sizes.path);
  return {};
}

Result<mdfs_ioc_operation> now(const std::string& path) {
  return call_operation(path, operation_request(MDFS_OPERATION_DRAIN, MDFS_IOC_OPERATION_STATUS));
}

bool is_resizing(const mdfs_ioc_operation& operation, std::uint32_t disk) {
  return operation.state == MDFS_OPERATION_RUNNING && (operation.flags & MDFS_OPERATION_DRY_RUN) == 0 &&
         operation.parameters[0] == disk && operation.parameters[2] != 0;
}

Status cancel(const ResizeArguments& arguments, std::uint32_t disk) {
  const auto running = now(arguments.path);
  if (!running.ok() || !is_resizing(*running, disk))
    return {Errc::kNoData, fmt::format("the size of disk {} is not being changed", disk)};
  MDFS_TRY(call_operation(arguments.path, operation_request(MDFS_OPERATION_DRAIN, MDFS_IOC_OPERATION_CANCEL)));
  print_out("disk {} keeps its size; moved data stay where they are\n", disk);
  return {};
}

Status resize(const ResizeArguments& arguments) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(arguments.path));
  MDFS_TRY_ASSIGN(const std::uint32_t disk, find_disk(volume, arguments.disk));
  if (arguments.cancel && (arguments.dry_run || !arguments.size.empty() || !arguments.budget.empty()))
    return {Errc::kUsage, "--cancel excludes SIZE, --dry-run and --budget"};
  if (arguments.cancel) return cancel(arguments, disk);
  if (arguments.size.empty()) return {Errc::kUsage, "SIZE is missing: give bytes, with K, M, G or T, or max"};
  if (volume.disks[disk].weight == 0)
    return {Errc::kInvalidArgument,
            fmt::format("disk {} is for metadata alone, and keeps its size: replace it by a larger one", disk)};
  MDFS_TRY_ASSIGN(Sizes sizes, sizes_of(volume, disk));
  MDFS_TRY(enlarge(arguments, sizes));
  MDFS_TRY_ASSIGN(const std::uint64_t blocks, wanted_blocks(arguments, sizes));
  MDFS_TRY(check_wanted(sizes, arguments.size, blocks));
  if (blocks >= sizes.now && blocks - sizes.now < sizes.least_change()) {
    if (arguments.json)
      print_out("{}\n", unchanged_json(sizes, blocks));
    else
      print_out("disk {} has {} ({} bytes) already; it grows by {} at least\n", disk, sizes.text(sizes.now),
                sizes.now * sizes.block_size, sizes.text(sizes.least_change()));
    return {};
  }
  const auto running = now(arguments.path);
  if (!running.ok() || !is_resizing(*running, disk) || running->parameters[2] != blocks) {
    const auto started = start(arguments, sizes, blocks);
    if (!started.ok()) return explained(started.error(), sizes, blocks);
    if (arguments.dry_run && arguments.json)
      print_out("{}\n", operation_json(*started, kResizeWords, arguments.path, members(sizes, blocks, sizes.now)));
    if (arguments.dry_run && !arguments.json)
      print_out("disk {} ({}) would have {}, now {}; {} would move\n", disk, sizes.path, sizes.text(blocks),
                sizes.text(sizes.now), format_size(started->bytes_total));
    if (arguments.dry_run) return {};
  } else if (arguments.dry_run) {
    return {Errc::kBusy, fmt::format("disk {} is already being shrunk to that size: see mdfs disk list", disk)};
  } else if (!arguments.budget.empty()) {
    mdfs_ioc_operation asked = operation_request(MDFS_OPERATION_DRAIN, MDFS_IOC_OPERATION_RESUME);
    MDFS_TRY_ASSIGN(asked.budget_bytes_s, parse_budget(arguments.budget));
    const auto resumed = call_operation(arguments.path, asked);
    if (!resumed.ok() && resumed.error().code != Errc::kNoData) return resumed.error();
  }
  return watch(arguments, sizes, blocks);
}

}  // namespace

std::optional<std::string> resizing_line(const std::string& path) {
  const auto running = now(path);
  if (!running.ok() || !is_resizing(*running, static_cast<std::uint32_t>(running->parameters[0]))) return std::nullopt;
  const auto left = operation_eta_s(*running);
  return fmt::format("disk {} is being shrunk: {} of {} moved{}", running->parameters[0],
                     format_size(running->bytes_done), format_size(running->bytes_total),
                     left ? ", about " + duration_text(*left) + " left" : std::string());
}

std::optional<std::string> resizing_json(const std::string& path) {
  const auto running = now(path);
  if (!running.ok() || !is_resizing(*running, static_cast<std::uint32_t>(running->parameters[0]))) return std::nullopt;
  return operation_json(*running, kResizeWords, path,
                        {{"disk", running->parameters[0]}, {"blocks", running->parameters[2]}});
}

void add_resize_command(CLI::App& noun, Action& action) {
  const auto arguments = std::make_shared<ResizeArguments>();
  CLI::App* command = noun.add_subcommand("resize", "Change the size of a disk");
  command->add_flag("--dry-run", arguments->dry_run, "Check everything, and show how much would move");
  command->add_option("--budget", arguments->budget,
                      "Read and write at most this many bytes per second (default: no limit)");
  add_cluster_options(*command);
  command->add_flag("--cancel", arguments->cancel, "Stop shrinking the disk");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->add_option("PATH", arguments->path, "Mount point, or any file on the volume")->required();
  command->add_option("DISK", arguments->disk, "Number, path or UUID of a disk of the volume")->required();
  command->add_option("SIZE", arguments->size, "New size, or max for the whole device or file");
  command->callback([arguments, &action] { action = [arguments] { return resize(*arguments); }; });
}

}  // namespace mdfs::tools
