// mdfs volume trim: tells the disks which blocks are unused.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "commands.h"
#include "mounted.h"
#include "support/file.h"
#include "support/json_output.h"
#include "support/progress.h"
#include "support/streams.h"
#include "support/text.h"
#include "volume_text.h"

namespace mdfs::tools {
namespace {

Error trim_error(int number, const std::string& path) {
  if (number == EPERM) return {Errc::kNotPermitted, path + ": trim requires root or the owner of the mount"};
  if (number == EBUSY)
    return {Errc::kBusy, path +
                             ": trim: a missing disk has the newest commit, and the commits of a trim would make it "
                             "stale; attach it and mount again"};
  return from_errno(number, path + ": trim");
}

struct TrimArguments {
  std::string path;
  std::string minimum;
  bool json = false;
};

std::uint32_t disks_in(const mdfs_ioc_trim& trim) {
  return std::min<std::uint32_t>(trim.disk_count, MDFS_IOC_MAX_DISKS);
}

bool has_more(const mdfs_ioc_trim& trim) {
  return std::any_of(trim.disks, trim.disks + disks_in(trim),
                     [](const auto& disk) { return disk.state == MDFS_IOC_TRIM_MORE; });
}

// Of all disks: bytes that have been looked at.
std::uint64_t looked_at(const mdfs_ioc_trim& trim, std::uint64_t block_size) {
  std::uint64_t blocks = 0;
  for (std::uint32_t i = 0; i < disks_in(trim); ++i) {
    const auto& disk = trim.disks[i];
    blocks += disk.state == MDFS_IOC_TRIM_MORE ? std::min(disk.next, disk.blocks) : disk.blocks;
  }
  return blocks * block_size;
}

// Call after call; a signal ends the program between two of them, or the call under way.
Status trim_all(const std::string& path, const mdfs_ioc_volume& volume, mdfs_ioc_trim& trim) {
  MDFS_TRY_ASSIGN(const File file, File::open(path, O_RDONLY | O_NONBLOCK));
  std::uint64_t total = 0;
  for (const std::uint32_t i : disk_numbers(volume)) total += volume.disks[i].blocks * volume.block_size;
  Progress progress("trim", total);
  trim.struct_bytes = sizeof trim;
  trim.flags = MDFS_IOC_TRIM_COMMIT;
  std::uint64_t before = 0;
  do {
    if (::ioctl(file.fd(), MDFS_IOC_TRIM, &trim) != 0) return trim_error(errno, path);
    const std::uint64_t now = looked_at(trim, volume.block_size);
    if (now > before) progress.add(now - before);
    before = std::max(before, now);
  } while (has_more(trim));
  return {};
}

std::string state_text(std::uint32_t state) {
  switch (state) {
    case MDFS_IOC_TRIM_DONE:
      return "trimmed";
    case MDFS_IOC_TRIM_REFUSED:
      return "cannot discard";
    case MDFS_IOC_TRIM_FAILED:
      return "failed";
    default:
      return "not there";
  }
}

void print_json(const mdfs_ioc_volume& volume, const mdfs_ioc_trim& trim, std::uint64_t minimum_bytes) {
  nlohmann::ordered_json json;
  json["output_version"] = kOutputVersion;
  json["uuid"] = uuid_text(volume.uuid);
  json["minimum_bytes"] = minimum_bytes;
  std::uint64_t sum = 0;
  auto disks = nlohmann::ordered_json::array();
  for (const std::uint32_t i : disk_numbers(volume)) {
    const auto& disk = trim.disks[i];
    const std::string why = text_of(disk.why);
    disks.push_back({{"number", i},
                     {"path", text_of(volume.disks[i].name)},
                     {"state", state_text(disk.state)},
                     {"discarded_bytes", disk.discarded_bytes},
                     {"error", why.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(why)}});
    sum += disk.discarded_bytes;
  }
  json["discarded_bytes"] = sum;
  json["disks"] = std::move(disks);
  print_out("{}\n", dump_json(json));
}

void print_text(const mdfs_ioc_volume& volume, const mdfs_ioc_trim& trim) {
  for (const std::uint32_t i : disk_numbers(volume)) {
    const auto& disk = trim.disks[i];
    print_out("disk {} {}: ", i, shown(volume.disks[i].name));
    if (disk.state == MDFS_IOC_TRIM_DONE)
      print_out("{} ({} bytes) trimmed\n", format_size(disk.discarded_bytes), disk.discarded_bytes);
    else
      print_out("{}, {} trimmed\n", state_text(disk.state), format_size(disk.discarded_bytes));
  }
}

Status trim_command(const TrimArguments& arguments) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(arguments.path));
  const auto trim = std::make_unique<mdfs_ioc_trim>();
  std::uint64_t minimum_bytes = 0;
  if (!arguments.minimum.empty()) {
    MDFS_TRY_ASSIGN(minimum_bytes, parse_size(arguments.minimum, "--minimum"));
  }
  trim->minimum_bytes = minimum_bytes;
  MDFS_TRY(trim_all(arguments.path, volume, *trim));
  if (arguments.json)
    print_json(volume, *trim, minimum_bytes);
  else
    print_text(volume, *trim);
  for (const std::uint32_t i : disk_numbers(volume))
    if (trim->disks[i].state == MDFS_IOC_TRIM_FAILED)
      return {Errc::kIo, fmt::format("disk {}: {}", i, shown(trim->disks[i].why))};
  return {};
}

}  // namespace

void add_trim_command(CLI::App& noun, Action& action) {
  const auto arguments = std::make_shared<TrimArguments>();
  CLI::App* command = noun.add_subcommand("trim", "Tell the disks which blocks are unused, as fstrim does");
  command->add_option("--minimum", arguments->minimum, "Skip free runs shorter than this, such as 1M");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->add_option("PATH", arguments->path, "Mount point, or any file on the volume")->required();
  command->callback([arguments, &action] { action = [arguments] { return trim_command(*arguments); }; });
}

}  // namespace mdfs::tools
