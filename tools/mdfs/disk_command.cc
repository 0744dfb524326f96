// mdfs disk list, add, weight.
// SPDX-License-Identifier: Apache-2.0
#include "disk_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/text.h"
#include "device/find_disks.h"
#include "device/open.h"
#include "device/probe.h"
#include "device/same_disk.h"
#include "device_names.h"
#include "mounted.h"
#include "store/format_volume.h"
#include "support/cluster_options.h"
#include "support/file.h"
#include "support/json_output.h"
#include "support/ranges.h"
#include "support/streams.h"
#include "support/text.h"
#include "volume_errors.h"
#include "volume_text.h"

namespace mdfs::tools {
namespace {

Uuid uuid_of(const std::uint8_t (&octets)[16]) {
  Uuid uuid;
  std::memcpy(uuid.octets.data(), octets, sizeof octets);
  return uuid;
}

struct ListArguments {
  std::string path;
  bool json = false;
};

Status list(const ListArguments& arguments) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(arguments.path));
  if (arguments.json) {
    nlohmann::ordered_json json;
    json["output_version"] = kOutputVersion;
    json["uuid"] = uuid_text(volume.uuid);
    json["block_size"] = volume.block_size;
    json["errors"] = all_errors(volume, arguments.path);
    const auto balancing = balancing_json(arguments.path);
    json["balancing"] = balancing ? nlohmann::ordered_json::parse(*balancing) : nlohmann::ordered_json();
    const auto draining = drain_json(volume, arguments.path);
    json["drain"] = draining ? nlohmann::ordered_json::parse(*draining) : nlohmann::ordered_json();
    const auto resizing = resizing_json(arguments.path);
    json["resizing"] = resizing ? nlohmann::ordered_json::parse(*resizing) : nlohmann::ordered_json();
    json["disks"] = nlohmann::ordered_json::array();
    for (const std::uint32_t i : disk_numbers(volume)) {
      json["disks"].push_back(disk_json(i, volume));
      const DeviceNames names = device_names(text_of(volume.disks[i].name));
      const auto known = [](const std::string& text) {
        return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
      };
      json["disks"].back()["by_id"] = known(names.by_id);
      json["disks"].back()["serial"] = known(names.serial);
    }
    print_out("{}\n", dump_json(json));
    return {};
  }
  print_out("{:>4} {:>6}  {:8} {:>10} {:>10} {:>5}  {}\n", "disk", "weight", "state", "size", "free", "used", "path");
  for (const std::uint32_t i : disk_numbers(volume)) {
    const auto& disk = volume.disks[i];
    const std::string state = state_name(disk.state);
    const bool readable = is_readable(disk.state);
    const double used =
        disk.blocks > 0 ? 100 - 100 * static_cast<double>(disk.free_blocks) / static_cast<double>(disk.blocks) : 0;
    print_out("{:>4} {:>6}  {:8} {:>10} {:>10} {:>5}  {}\n", i, disk.weight, state,
              format_size(disk.blocks * volume.block_size),
              readable ? format_size(disk.free_blocks * volume.block_size) : "-",
              readable ? fmt::format("{:.0f} %", used) : "-", shown(disk.name));
    const DeviceNames names = device_names(text_of(disk.name));
    if (!names.by_id.empty()) print_out("{:52}{}\n", "", names.by_id);
    if (!names.serial.empty()) print_out("{:52}serial {}\n", "", names.serial);
  }
  for (const std::string& line : drain_lines(volume, arguments.path)) print_out("{}\n", line);
  if (const auto line = balancing_line(arguments.path)) print_out("{}\n", *line);
  if (const auto line = resizing_line(arguments.path)) print_out("{}\n", *line);
  for (const std::string& error : all_errors(volume, arguments.path)) print_out("error: {}\n", error);
  return {};
}

struct WeightArguments {
  std::string path, disk;
  std::uint16_t weight = 1;
};

Status weight(const WeightArguments& arguments) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(arguments.path));
  MDFS_TRY_ASSIGN(const std::uint32_t disk, find_disk(volume, arguments.disk));
  MDFS_TRY_ASSIGN(fuse::ControlClient daemon, daemon_of(volume));
  MDFS_TRY(daemon.change({fmt::format("weight {} {}", disk, arguments.weight)}, {}));
  print_out("disk {} has weight {} for images and files made from now on\n", disk, arguments.weight);
  return {};
}

// The weight that most disks for data have.
std::uint16_t usual_weight(const mdfs_ioc_volume& volume) {
  std::map<std::uint32_t, unsigned> count;
  for (const std::uint32_t i : disk_numbers(volume))
    if (volume.disks[i].weight > 0) ++count[volume.disks[i].weight];
  const auto usual =
      std::max_element(count.begin(), count.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return usual == count.end() ? std::uint16_t{1} : static_cast<std::uint16_t>(usual->first);
}

// The contents of a disk will be lost: it must be empty, or the user gives --force. A disk that was being added to this
// volume when an error occurred is empty.
Status check_contents(const mdfs_ioc_volume& volume, const std::string& path, bool force) {
  MDFS_TRY_ASSIGN(const auto found, device::find_contents(path));
  if (!found || force) return {};
  const auto label = device::read_label(path);
  if (label.ok() && label->volume_uuid == uuid_of(volume.uuid)) {
    const auto numbers = disk_numbers(volume);
    const bool member = std::any_of(numbers.begin(), numbers.end(),
                                    [&](std::uint32_t i) { return uuid_of(volume.disks[i].uuid) == label->disk_uuid; });
    if (member) return {Errc::kExists, path + ": is a member of this volume that was missing at the mount"};
    std::set<Uuid> members;
    for (const std::uint32_t i : numbers) members.insert(uuid_of(volume.disks[i].uuid));
    switch (device::look_at_former_member(path, *label, members)) {
      case device::FormerMember::kHoldsNothing:
        return {};
      case device::FormerMember::kIsBehind:
        return {Errc::kExists,
                path + ": was a member of this volume, which has removed it; give --force to overwrite it"};
      case device::FormerMember::kWrittenApart:
        return {Errc::kExists, path +
                                   ": was a member of this volume, and was written apart from it: it may hold files "
                                   "that the volume lacks; give --force to overwrite it"};
    }
  }
  return {Errc::kExists, fmt::format("{}: holds {}; give --force to overwrite it", path, *found)};
}

// No disk twice, under any name, and no member of the volume.
Status check_new(const mdfs_ioc_volume& volume, const std::vector<std::string>& disks) {
  for (std::size_t i = 0; i < disks.size(); ++i) {
    for (std::size_t before = 0; before < i; ++before)
      if (device::is_same_disk(disks[before], disks[i]))
        return {Errc::kInvalidArgument, disks[i] + ": the same disk is given twice"};
    for (const std::uint32_t number : disk_numbers(volume))
      if (device::is_same_disk(text_of(volume.disks[number].name), disks[i]))
        return {Errc::kExists, fmt::format("{}: is disk {} of this volume", disks[i], number)};
  }
  return {};
}

// The daemon would wait for itself.
Status check_place(const std::string& mounted, const std::string& path, bool is_to_be_made) {
  if (!device::is_path(path)) return {};
  struct stat volume {
  }, disk{};
  if (::stat(mounted.c_str(), &volume) != 0) return from_errno(errno, mounted);
  const std::string parent = std::filesystem::path(path).parent_path();
  const std::string& place = is_to_be_made ? (parent.empty() ? "." : parent) : path;
  if (::stat(place.c_str(), &disk) != 0) return from_errno(errno, place);
  if (volume.st_dev != disk.st_dev) return {};
  return {Errc::kInvalidArgument, path + ": is a file on the volume itself"};
}

Status check_count(const mdfs_ioc_volume& volume, std::size_t more) {
  if (disk_numbers(volume).size() + more <= MDFS_IOC_MAX_DISKS) return {};
  return {Errc::kUsage, fmt::format("a volume has at most {} disks", MDFS_IOC_MAX_DISKS)};
}

Status add(const AddArguments& arguments) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(arguments.path));
  MDFS_TRY_ASSIGN(const std::vector<NewDisk> disks, join(volume, arguments));
  if (!arguments.json) {
    print_new_disks(disks);
    if (!arguments.balance || arguments.dry_run) return {};
    std::vector<std::uint32_t> numbers;
    for (const NewDisk& disk : disks) numbers.push_back(disk.number.value_or(0));
    return balance_onto(arguments.path, numbers, true, {}, false, false);
  }
  nlohmann::ordered_json json;
  json["output_version"] = kOutputVersion;
  json["dry_run"] = arguments.dry_run;
  json["disks"] = nlohmann::ordered_json::array();
  for (const NewDisk& disk : disks) {
    const auto number = disk.number ? nlohmann::ordered_json(*disk.number) : nlohmann::ordered_json();
    json["disks"].push_back({{"number", number}, {"path", disk.path}, {"bytes", disk.bytes}, {"weight", disk.weight}});
  }
  print_out("{}\n", dump_json(json));
  return {};
}

void add_list(CLI::App& noun, Action& action) {
  const auto arguments = std::make_shared<ListArguments>();
  CLI::App* command = noun.add_subcommand("list", "List the disks: number, weight, state, space");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->add_option("PATH", arguments->path, "Mount point, or any file on the volume")->required();
  command->callback([arguments, &action] { action = [arguments] { return list(*arguments); }; });
}

void add_add(CLI::App& noun, Action& action) {
  const auto arguments = std::make_shared<AddArguments>();
  CLI::App* command = noun.add_subcommand("add", "Add disks; new images and files use them at once");
  CLI::Option* weight =
      command->add_option("--weight", arguments->weight, "Weight of each new disk (default: the weight of most disks)")
          ->check(whole_number(1, 256));
  CLI::Option* metadata =
      command->add_flag("--metadata", arguments->metadata, "Use the new disks for names and maps alone")
          ->excludes(weight);
  command->add_flag("--dry-run", arguments->dry_run, "Check everything, but change nothing");
  add_cluster_options(*command);
  add_new_disk_options(*command, arguments->made);
  command->add_flag("--force", arguments->made.force, "Use disks that hold data; their contents are lost");
  CLI::Option* json = command->add_flag("--json", arguments->json, "Print JSON");
  command->add_flag("--balance", arguments->balance, "Then move stored data to disks with less than their share")
      ->excludes(json)
      ->excludes(metadata);
  command->add_option("PATH", arguments->path, "Mount point, or any file on the volume")->required();
  command->add_option("DISK", arguments->disks, "Block devices, files or rados:POOL[/NAMESPACE]/NAME")->required();
  command->callback([arguments, &action] { action = [arguments] { return add(*arguments); }; });
}

void add_weight(CLI::App& noun, Action& action) {
  const auto arguments = std::make_shared<WeightArguments>();
  CLI::App* command = noun.add_subcommand("weight", "Set the weight of a disk for new images and files");
  command->add_option("PATH", arguments->path, "Mount point, or any file on the volume")->required();
  command->add_option("DISK", arguments->disk, "Number, path or UUID of a disk of the volume")->required();
  command->add_option("WEIGHT", arguments->weight, "New weight, 1 to 256")->required()->check(whole_number(1, 256));
  command->callback([arguments, &action] { action = [arguments] { return weight(*arguments); }; });
}

}  // namespace

Result<fuse::ControlClient> daemon_of(const mdfs_ioc_volume& volume) {
  auto client = fuse::ControlClient::connect(uuid_of(volume.uuid));
  if (client.ok()) return client;
  return Error{client.error().code,
               "cannot reach the daemon of this volume (only its owner may): " + client.error().where};
}

Result<std::uint32_t> find_disk(const mdfs_ioc_volume& volume, const std::string& wanted) {
  const auto full = device::full_name(wanted);
  for (const std::uint32_t i : disk_numbers(volume)) {
    const auto& disk = volume.disks[i];
    if (wanted == fmt::format("{}", i) || wanted == uuid_text(disk.uuid)) return i;
    const std::string name = text_of(disk.name);
    if (name.empty()) continue;
    const bool is_cut = name.starts_with(kEllipsis);
    if (wanted == name || (full.ok() && (is_cut ? full->ends_with(name.substr(kEllipsis.size())) : *full == name)))
      return i;
  }
  return Error{Errc::kNotFound, fmt::format("{}: the volume has no such disk; its disks are {} (see mdfs disk list)",
                                            wanted, fmt::join(disk_numbers(volume), ", "))};
}

Result<std::vector<NewDisk>> join(const mdfs_ioc_volume& volume, const AddArguments& arguments) {
  store::FormatOptions format;
  format.block_size = volume.block_size;
  NewDisks made;
  std::vector<device::UniqueFd> files;
  std::vector<int> descriptors;
  const std::uint16_t weight = arguments.metadata ? std::uint16_t{0} : arguments.weight.value_or(usual_weight(volume));
  std::vector<std::string> lines = {"add-disks"};
  std::vector<NewDisk> joining;
  std::vector<store::DiskSize> sizes;
  MDFS_TRY(check_new(volume, arguments.disks));
  MDFS_TRY_ASSIGN(const auto ring, device::UringContext::create());
  MDFS_TRY(check_new_disk_options(arguments.made));
  for (const std::string& path : arguments.disks)
    MDFS_TRY(check_place(arguments.path, path, arguments.made.size.has_value()));
  if (arguments.made.size) {
    MDFS_TRY_ASSIGN(const std::uint64_t bytes, bytes_of_new_disks(arguments.made));
    for (const std::string& path : arguments.disks) sizes.push_back({path, bytes});
    MDFS_TRY(store::check_format(sizes, format));
    sizes.clear();
    if (arguments.dry_run) {
      MDFS_TRY(NewDisks::check(arguments.disks, arguments.made, ring));
      for (const std::string& path : arguments.disks) joining.push_back({path, bytes, weight, std::nullopt});
      MDFS_TRY(check_count(volume, joining.size()));
      return joining;
    }
    MDFS_TRY(check_count(volume, arguments.disks.size()));
    MDFS_TRY(made.make(arguments.disks, arguments.made, ring));
  }
  for (const std::string& path : arguments.disks) {
    MDFS_TRY_ASSIGN(device::UniqueFd file, device::open_disk_descriptor(path, device::OpenMode::kReadWrite));
    // The ring may keep a descriptor for a while after it has been closed: the lock is taken once.
    MDFS_TRY_ASSIGN(const auto disk, device::adopt_disk(path, device::UniqueFd(::dup(file.get())), ring));
    sizes.push_back({path, size_of_file(path, disk->size_bytes())});
    MDFS_TRY_ASSIGN(const std::string full, device::full_name(path));
    joining.push_back({path, sizes.back().bytes, weight, std::nullopt});
    descriptors.push_back(file.get());
    files.push_back(std::move(file));
    lines.push_back(fmt::format("{} {}", weight, full));
  }
  MDFS_TRY(store::check_format(sizes, format));
  for (const std::string& path : arguments.disks)
    if (!arguments.made.size) MDFS_TRY(check_contents(volume, path, arguments.made.force));
  MDFS_TRY(check_count(volume, sizes.size()));
  if (arguments.dry_run) return joining;
  MDFS_TRY_ASSIGN(fuse::ControlClient daemon, daemon_of(volume));
  for (const std::string& path : arguments.disks) MDFS_TRY(device::wipe_signatures(path));
  // From here on they may be members, whatever the answer is.
  made.keep();
  const Result<std::string> answered = daemon.change(lines, descriptors);
  if (!answered.ok() && arguments.made.size)
    return Error{answered.error().code,
                 fmt::format("{} (what was made stays: {})", answered.error().where, fmt::join(arguments.disks, " "))};
  MDFS_TRY_ASSIGN(const std::string answer, answered);
  std::string_view left = answer;
  for (NewDisk& disk : joining) {
    const std::size_t end = std::min(left.find(' '), left.size());
    MDFS_TRY_ASSIGN(const std::uint64_t number, parse_number(left.substr(0, end), "disk"));
    disk.number = static_cast<std::uint32_t>(number);
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return joining;
}

void print_new_disks(const std::vector<NewDisk>& disks) {
  for (const NewDisk& disk : disks) {
    const std::string what =
        disk.number ? fmt::format("disk {}: {}, ", *disk.number, disk.path) : fmt::format("would add {}: ", disk.path);
    print_out("{}{}, {}\n", what, format_size(disk.bytes),
              disk.weight == 0 ? "for metadata alone" : fmt::format("weight {}", disk.weight));
  }
}

void add_disk_commands(CLI::App& app, Action& action) {
  CLI::App* noun = app.add_subcommand("disk", "Show, add, remove and change the disks of a mounted volume");
  noun->require_subcommand(1);
  add_list(*noun, action);
  add_add(*noun, action);
  add_weight(*noun, action);
  add_drain_commands(*noun, action);
  add_resize_command(*noun, action);
  add_probe_command(*noun, action);
  add_balance_command(*noun, action);
  add_rebuild_command(*noun, action);
  add_disk_stats_command(*noun, action);
}

}  // namespace mdfs::tools
