// Asking a mount how full its zones are.
// SPDX-License-Identifier: Apache-2.0
#include "occupation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <numeric>

#include "support/file.h"
#include "volume_text.h"

namespace mdfs::tools {
namespace {

constexpr double kNearlyFull = 0.9;
constexpr std::uint64_t kMostZones = std::uint64_t{1} << 32;

// All pages of one disk, or nothing if it leaves the volume meanwhile. A disk that gets another size is read anew.
Result<DiskOccupation> ask(const File& file, std::uint32_t disk) {
  DiskOccupation occupation;
  const auto page = std::make_unique<mdfs_ioc_zones>();
  std::uint64_t next = 0, zone_count = 0;
  do {
    *page = {};
    page->disk = disk;
    page->next = next;
    if (::ioctl(file.fd(), MDFS_IOC_ZONES, page.get()) != 0) {
      if (errno == EINVAL) return DiskOccupation{};
      if (errno != EBUSY) return from_errno(errno, file.name() + ": zones");
      DiskOccupation silent;
      silent.silent = true;
      return silent;
    }
    if (page->zone_count == 0) return DiskOccupation{};
    const bool resized = next > 0 && page->zone_count != zone_count;
    zone_count = page->zone_count;
    if (resized) {
      occupation.zones.clear();
      next = 0;
      continue;
    }
    if (page->count > MDFS_IOC_ZONES_ROWS || zone_count > kMostZones ||
        occupation.zones.size() + page->count > zone_count)
      return Error{Errc::kCorrupt, file.name() + ": the daemon's answer is invalid"};
    for (std::uint32_t i = 0; i < page->count; ++i)
      occupation.zones.push_back({page->zones[i].blocks, page->zones[i].used_blocks});
    next = page->next;
  } while (next == 0 || page->count > 0);
  occupation.there = true;
  occupation.zone_blocks = page->zone_blocks;
  occupation.data_blocks = page->data_blocks;
  occupation.data_used_blocks = page->data_blocks - std::min(page->data_blocks, page->data_free_blocks);
  occupation.fallback_runs = page->fallback_runs;
  return occupation;
}

}  // namespace

std::vector<double> DiskOccupation::zone_shares() const {
  std::vector<double> shares;
  for (const ZoneOccupation& zone : zones)
    if (zone.blocks > 0) shares.push_back(static_cast<double>(zone.used_blocks) / static_cast<double>(zone.blocks));
  return shares;
}

Result<std::vector<DiskOccupation>> occupation(const std::string& path, const mdfs_ioc_volume& volume) {
  MDFS_TRY_ASSIGN(const File file, File::open(path, O_RDONLY | O_NONBLOCK));
  std::vector<DiskOccupation> disks(std::min<std::uint32_t>(volume.disk_count, MDFS_IOC_MAX_DISKS));
  for (std::uint32_t i = 0; i < disks.size(); ++i)
    if (is_readable(volume.disks[i].state)) {
      MDFS_TRY_ASSIGN(disks[i], ask(file, i));
      disks[i].no_data = volume.disks[i].weight == 0;
    }
  return disks;
}

double imbalance(const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (sum <= 0) return 1;
  return *std::max_element(shares.begin(), shares.end()) * static_cast<double>(shares.size()) / sum;
}

std::vector<double> disk_shares(const std::vector<DiskOccupation>& disks) {
  std::vector<double> shares;
  for (const DiskOccupation& disk : disks)
    if (disk.there && !disk.no_data) shares.push_back(disk.share());
  return shares;
}

std::vector<std::string> fullness_warnings(const std::vector<DiskOccupation>& disks) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < disks.size(); ++i) {
    const DiskOccupation& disk = disks[i];
    if (disk.no_data || disk.share() < kNearlyFull) continue;
    std::string line = fmt::format("disk {} is {:.0f} % full", i, disk.share() * 100);
    if (disk.fallback_runs > 0)
      line += fmt::format("; its new extents go to other disks ({} so far)", disk.fallback_runs);
    else if (disks.size() > 1)
      line += "; when it is full its new extents go to other disks";
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace mdfs::tools
