// Measures how long disks take for reads like those of a stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "streams/demand.h"
#include "volume/volume.h"

namespace mdfs::streams {

// The time for a byte of each disk with reads, as cost_ns() counts it: blocks of the image are read again from its
// disks, all of them at once, for about `trial_ns`. A disk on which none of them is found has the time of the slowest
// other one. The reads are ordinary ones, which take no more of others than any reader does. Schedules are kept
// meanwhile. kNoData: nothing could be measured. Any thread; one trial at a time.
Result<std::vector<double>> measure_disks(volume::Volume& volume, volume::Ino ino, const std::vector<DiskReads>& reads,
                                          std::int64_t trial_ns, const engine::Stop& stop);

}  // namespace mdfs::streams
