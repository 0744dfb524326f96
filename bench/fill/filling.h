// Fills a volume step by step and asks the model how fast the images that were stored at each step are read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "geometry/geometry.h"
#include "model/machine.h"

namespace mdfs::bench {

struct FillOptions {
  unsigned disks = 4;
  std::uint64_t disk_bytes = 1u << 30;  // zones are a thirty-second of it: several images long
  geometry::AllocationPolicy policy = geometry::AllocationPolicy::kScatter;
  std::uint64_t seed = 1;
  std::vector<double> steps{};  // shares of the volume in use, ascending
  unsigned images = 12;         // stored last before each step, and read
};

// Of the images that were stored just before the volume was so full.
struct FillPoint {
  double full = 0;
  double image_bytes_per_s = 0;   // whole images
  double window_bytes_per_s = 0;  // 1024x1024 at random, each from an idle machine
  double runs = 0;                // contiguous runs of an image on a disk, on average
};

// A real volume, store and engine, on disks that keep tree nodes and labels and forget the bytes of extents. What is
// read is not timed but simulated, from where the extents lie: the same options give the same figures. Heads and zones
// of the machine are stretched over the small disks. kNoSpace: a step that cannot be reached.
Result<std::vector<FillPoint>> fill(const model::Machine& machine, const FillOptions& options);

}  // namespace mdfs::bench
