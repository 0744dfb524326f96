// Decides when the rebuild of lost disks starts by itself. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "mdfs/ondisk.h"

namespace mdfs::volume {

// Of one mount. A disk that is away for a moment costs nothing, and a rebuild that a user has stopped stays stopped.
// One thread.
class AutomaticRebuild {
 public:
  // A disk must have been lost for so long.
  explicit AutomaticRebuild(std::int64_t delay_ns) : delay_ns_(delay_ns) {}

  // To be called now and then. `lost`: the disks that are lost now, a bit each. True once for each disk, when it has
  // been lost all the time for the delay.
  bool is_due(std::int64_t now_ns, std::uint64_t lost) {
    bool due = false;
    for (unsigned disk = 0; disk < MDFS_MAX_DISKS; ++disk) {
      const std::uint64_t bit = std::uint64_t{1} << disk;
      if ((lost & ~known_ & bit) != 0) since_ns_[disk] = now_ns;
      if ((lost & ~begun_ & bit) == 0 || now_ns - since_ns_[disk] < delay_ns_) continue;
      begun_ |= bit;
      due = true;
    }
    known_ = lost;
    begun_ &= lost;
    return due;
  }

 private:
  std::int64_t delay_ns_;
  std::array<std::int64_t, MDFS_MAX_DISKS> since_ns_{};
  std::uint64_t known_ = 0, begun_ = 0;
};

}  // namespace mdfs::volume
