// How full the disks of a mounted volume are, and their zones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "mdfs/ioctl.h"

namespace mdfs::tools {

struct ZoneOccupation {
  std::uint64_t blocks = 0;  // for data; 0: kept for metadata
  std::uint64_t used_blocks = 0;
};

struct DiskOccupation {
  bool there = false;  // else all is zero
  std::uint64_t data_blocks = 0;
  std::uint64_t data_used_blocks = 0;
  std::uint64_t fallback_runs = 0;  // on other disks because this one was full, since the mount
  std::uint64_t zone_blocks = 0;
  std::vector<ZoneOccupation> zones{};
  bool silent = false;   // it does not answer
  bool no_data = false;  // it is for metadata alone

  double share() const {
    return data_blocks == 0 ? 0 : static_cast<double>(data_used_blocks) / static_cast<double>(data_blocks);
  }
  // Of the zones with room for data.
  std::vector<double> zone_shares() const;
};

// By disk. `path`: any file or directory of the volume.
Result<std::vector<DiskOccupation>> occupation(const std::string& path, const mdfs_ioc_volume& volume);

// The largest against the mean: 1 is even. 1 where all are 0, or there are none.
double imbalance(const std::vector<double>& shares);
// Shares of the disks that are there.
std::vector<double> disk_shares(const std::vector<DiskOccupation>& disks);
// A line for each disk that is nearly full, or whose extents go elsewhere.
std::vector<std::string> fullness_warnings(const std::vector<DiskOccupation>& disks);

}  // namespace mdfs::tools
