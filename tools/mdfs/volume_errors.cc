// Errors of a volume, as messages.
// SPDX-License-Identifier: Apache-2.0
#include "volume_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "device/open.h"
#include "spare.h"
#include "volume_text.h"

namespace mdfs::tools {
namespace {

std::string disk_name(const mdfs_ioc_volume& volume, std::uint32_t number) {
  const std::string path = shown(volume.disks[number].name);
  return path.empty() ? fmt::format("disk {}", number) : fmt::format("disk {} ({})", number, path);
}

std::string of_out(const mdfs_ioc_volume& volume, std::uint32_t number) {
  const auto& row = volume.disks[number];
  if (!is_out(volume, number)) return {};
  return fmt::format(
      "{} is out: it failed, and commits continue without it since {}; generation {} is the last that it has. {} Run "
      "'mdfs disk replace' to move its data to a new disk, or 'mdfs disk remove' to move them to the others",
      disk_name(volume, number), time_text(row.out_ns), row.out_generation,
      static_cast<DiskState>(row.state) == DiskState::kMissing ? "It is missing, and its data cannot be read."
                                                               : "Its data are read where it answers.");
}

std::string of_disk(const mdfs_ioc_volume& volume, std::uint32_t number) {
  const auto& row = volume.disks[number];
  const std::string disk = disk_name(volume, number);
  const std::uint64_t wanted = row.blocks * volume.block_size;
  switch (static_cast<DiskState>(row.state)) {
    case DiskState::kHealthy:
    case DiskState::kNone:
    case DiskState::kDraining:
    case DiskState::kOut:
      return {};
    case DiskState::kMissing:
      if (is_out(volume, number)) return {};
      return disk +
             " is missing, and its data cannot be read: unmount, attach it, and mount again; writes without it make it "
             "stale";
    case DiskState::kStale:
      return disk +
             " is stale: the volume was written without it. It counts as missing and is only read. If it is an old "
             "copy of a disk, attach that disk instead. Otherwise run 'mdfs disk remove' to move its data to the "
             "others, then 'mdfs disk add --force' to add it as a new one";
    case DiskState::kFailed:
      if (row.device_bytes < wanted)
        return fmt::format(
            "{} has failed: it was truncated while in use: {} are left of {}; copy what can be read, "
            "unmount, restore its size and contents, and mount again",
            disk, format_size(row.device_bytes), format_size(wanted));
      return disk + " has failed: it is smaller than its label says; unmount, restore its size, and mount again";
    case DiskState::kDeleted:
      if (!device::is_path(shown(row.name)))
        return disk +
               " has lost its header object in the cluster: nothing more is written to it; give it the header back "
               "(doc/SCALE.md), then unmount and mount again";
      return disk +
             " was deleted while in use: its data can be read, and are lost at the unmount. Before that, as root, copy "
             "the open file of the daemon (/proc/PID/fd/N, see 'ls -l') to the path of the disk; then unmount and "
             "mount again";
  }
  return disk + ": in a state unknown to this program";
}

// A disk that is a file with holes, on a filesystem that is full.
std::string of_room_below(const mdfs_ioc_volume& volume, std::uint32_t number) {
  const auto& row = volume.disks[number];
  if (volume.read_only != 0 || is_out(volume, number) || row.room_below_bytes >= volume.commit_room_bytes) return {};
  return fmt::format(
      "disk {} ({}): the filesystem or pool below it has {} left, and a commit needs {} there: nothing can be made "
      "durable; "
      "make room, or move the disk while the volume is unmounted",
      number, shown(row.name), format_size(row.room_below_bytes), format_size(volume.commit_room_bytes));
}

// Reasons as the store words them; an option that was given is no error.
std::string of_reason(std::string_view reason) {
  struct Advice {
    std::string_view part, what;
  };
  static constexpr Advice kAdvice[] = {
      {"opened read-only", ""},
      {"a majority", "attach the missing disks and mount again, or write without them with -o degraded"},
      {"was deleted while in use", "unsynced data are lost; copy that disk back before the unmount"},
      {"the commit of generation", "unsynced data are lost; examine that disk, unmount, run mdfsck, mount again"},
      {"recovery could not be completed", "examine that disk, unmount, and mount again"},
      {"is open for reading only", "unmount, make that disk writable, and mount again"},
      {"features", "mount it with a newer version to write"},
  };
  const auto* const advice = std::find_if(std::begin(kAdvice), std::end(kAdvice), [&](const Advice& one) {
    return reason.find(one.part) != std::string_view::npos;
  });
  if (advice == std::end(kAdvice)) return fmt::format("read-only: {}", reason);
  return advice->what.empty() ? std::string() : fmt::format("read-only: {}: {}", reason, advice->what);
}

// Without what it holds.
bool lacks_disk(const mdfs_ioc_volume& volume) {
  const std::uint32_t count = std::min<std::uint32_t>(volume.disk_count, MDFS_IOC_MAX_DISKS);
  return std::any_of(volume.disks, volume.disks + count, [](const auto& row) {
    const auto state = static_cast<DiskState>(row.state);
    return state != DiskState::kHealthy && state != DiskState::kNone && state != DiskState::kDraining;
  });
}

}  // namespace

std::vector<std::string> volume_errors(const mdfs_ioc_volume& volume) {
  std::vector<std::string> all;
  if (volume.read_only != 0) all.push_back(of_reason(shown(volume.read_only_reason)));
  const std::uint32_t count = std::min<std::uint32_t>(volume.disk_count, MDFS_IOC_MAX_DISKS);
  for (std::uint32_t i = 0; i < count; ++i) {
    all.push_back(of_out(volume, i));
    all.push_back(of_disk(volume, i));
    all.push_back(of_room_below(volume, i));
  }
  std::erase(all, "");
  if ((volume.flags & MDFS_VOLUME_COPIES) != 0 && (volume.flags & MDFS_VOLUME_TO_REBUILD) != 0 && lacks_disk(volume))
    all.emplace_back(
        "protected files may not survive the next loss: run 'mdfs disk rebuild' to make copies and parities anew");
  if (auto error = spare_error(volume)) all.push_back(std::move(*error));
  if ((volume.flags & MDFS_VOLUME_ZEROES_LOST) != 0)
    all.emplace_back("mounted with errors=zero: data on missing disks read as zeros");
  return all;
}

std::vector<std::string> disk_errors(const mdfs_ioc_volume& volume, const mdfs_ioc_disks& counted) {
  std::vector<std::string> all;
  const std::uint32_t count = std::min<std::uint32_t>(volume.disk_count, MDFS_IOC_MAX_DISKS);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto& disk = counted.disks[i];
    const std::pair<const char*, std::uint64_t> kinds[] = {{"reading", disk.read_errors},
                                                           {"writing", disk.write_errors},
                                                           {"flushing", disk.flush_errors},
                                                           {"checksums", disk.checksum_errors}};
    std::string errors;
    for (const auto& [kind, number] : kinds)
      if (number > 0) errors += fmt::format("{}{} {}", errors.empty() ? "" : ", ", kind, number);
    if (errors.empty()) continue;
    all.push_back(
        fmt::format("disk {} ({}) has had errors: {}; 'mdfs scrub start' repairs metadata and lists damage, mdfsck "
                    "rebuilds maps of free space, 'mdfs disk stats --reset' clears the counts",
                    i, shown(volume.disks[i].name), errors));
  }
  return all;
}

std::vector<std::string> slow_disks(const mdfs_ioc_volume& volume, const mdfs_ioc_disks& counted) {
  std::vector<std::string> all;
  const std::uint32_t count = std::min<std::uint32_t>(volume.disk_count, MDFS_IOC_MAX_DISKS);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t percent = counted.disks[i].slowness_percent;
    if (percent <= 100) continue;
    all.push_back(fmt::format("disk {} ({}) is slow: reads take {:.1f} times as long as on the others{}", i,
                              shown(volume.disks[i].name), static_cast<double>(percent) / 100,
                              (volume.flags & MDFS_VOLUME_COPIES) != 0
                                  ? ", so what has two copies is read elsewhere; unless its kind is slower, replace it"
                                  : "; unless its kind is slower, replace it"));
  }
  return all;
}

}  // namespace mdfs::tools
