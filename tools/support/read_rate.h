// Measures the read rate of disks, for the weights of a new volume.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/disk.h"

namespace mdfs::tools {

// Size of the reads: as large as the groups of an image on a disk.
inline constexpr std::uint64_t kStretchBytes = 4u << 20;
inline constexpr std::uint64_t kStretchRequestBytes = 256u << 10;

struct ReadRate {
  double bytes_per_second = 0;
  unsigned ranges = 0;
};

// Reads at places spread over each disk, all disks at once (like a window), for about 1.3 seconds and for
// at least three reads of each. The first 0.3 seconds do not count: throttled and cached disks have credit.
// Errors name the disk.
Result<std::vector<ReadRate>> measure_read_rates(std::span<device::Disk* const> disks);

// From "auto", "equal", "by-capacity", "measure" or "2,1,.." to a weight for each disk.
struct DiskWeights {
  std::vector<std::uint16_t> weights;
  std::vector<ReadRate> rates;  // where they were measured; else empty
  bool alike = true;            // as far as can be seen without measuring
};
Result<DiskWeights> weigh_disks(std::string_view how, std::span<device::Disk* const> disks);
// Checks the words before anything is opened.
Status check_weights(std::string_view how, std::size_t disks);
// Lines to show: the measurement, or that disks differ and have equal weights. May be empty.
std::string explain(const DiskWeights& weights, std::span<device::Disk* const> disks, std::string_view how);

}  // namespace mdfs::tools
