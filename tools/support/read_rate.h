// How fast disks read: a short calibration for the weights of a new volume.
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

// What a calibration reads, for people: stretches as large as the groups in which an image lies on a disk.
inline constexpr std::uint64_t kStretchBytes = 4u << 20;
inline constexpr std::uint64_t kStretchRequestBytes = 256u << 10;

struct ReadRate {
  double bytes_per_second = 0;
  unsigned stretches = 0;
};

// Reads stretches that are spread over each disk, all disks at once (as a window does), for about 1.3 seconds and for
// at least three stretches of each. The first 0.3 seconds do not count: throttled and cached disks have credit.
// Errors name the disk.
Result<std::vector<ReadRate>> measure_read_rates(std::span<device::Disk* const> disks);

// From "auto", "equal", "by-capacity", "measure" or "2,1,.." to a weight for each disk.
struct DiskWeights {
  std::vector<std::uint16_t> weights;
  std::vector<ReadRate> rates;  // where they were measured; else empty
  bool alike = true;            // as far as can be seen without measuring
};
Result<DiskWeights> weigh_disks(std::string_view how, std::span<device::Disk* const> disks);
// The words are right, before anything is opened.
Status check_weights(std::string_view how, std::size_t disks);
// Lines for people: what was measured and how, or that disks differ and are treated alike. Empty: nothing to say.
std::string explain(const DiskWeights& weights, std::span<device::Disk* const> disks, std::string_view how);

}  // namespace mdfs::tools
