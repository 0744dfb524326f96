// Lines about disks that become full.
// SPDX-License-Identifier: Apache-2.0
#include "store/fullness.h"

#include <fmt/format.h>

namespace mdfs::store {

std::optional<std::string> Fullness::note_use(std::size_t disk, const std::string& name, std::uint64_t used_blocks,
                                              std::uint64_t data_blocks) {
  Disk& state = disks_[disk];
  const double percent =
      data_blocks == 0 ? 100 : 100 * static_cast<double>(used_blocks) / static_cast<double>(data_blocks);
  while (state.said > 0 && percent < kThresholdsPercent[state.said - 1] - kForgetPercent) --state.said;
  if (percent < kThresholdsPercent[0] - kForgetPercent) state.said_spill = false;
  const std::size_t before = state.said;
  while (state.said < kThresholdsPercent.size() && percent >= kThresholdsPercent[state.said]) ++state.said;
  if (state.said == before) return std::nullopt;
  return fmt::format("disk {} ({}) is {:.0f} % full{}", disk, name, percent,
                     disks_.size() > 1 ? "; when it has no room left its new extents go to other disks" : "");
}

std::optional<std::string> Fullness::note_spill(std::size_t disk, const std::string& name) {
  Disk& state = disks_[disk];
  ++state.spilled;
  if (state.said_spill) return std::nullopt;
  state.said_spill = true;
  return fmt::format("disk {} ({}) has no room left: its new extents go to other disks", disk, name);
}

}  // namespace mdfs::store
