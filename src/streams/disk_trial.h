// Measures how long disks take for reads like those of a stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "volume/volume.h"

namespace mdfs::streams {

// Reads of one disk for one frame, on average.
struct DiskReads {
  double requests = 0;
  double bytes = 0;
};

// The time of a disk for these reads: each request costs as much as device::kRequestBytes more.
double cost_ns(const DiskReads& reads, double ns_per_byte);

// The time for a byte of each disk with reads, as cost_ns() counts it: blocks of the image are read again from its
// disks, all of them at once, for about `trial_ns`. A disk on which none of them is found has the time of the slowest
// other one. The reads are ordinary ones, which take no more of others than any reader does. Schedules are kept
// meanwhile. kNoData: nothing could be measured. Any thread; one trial at a time.
Result<std::vector<double>> measure_disks(volume::Volume& volume, volume::Ino ino, const std::vector<DiskReads>& reads,
                                          std::int64_t trial_ns, const engine::Stop& stop);

}  // namespace mdfs::streams
