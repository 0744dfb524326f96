// Lines about disks that become full.
// SPDX-License-Identifier: Apache-2.0
#include "store/fullness.h"

#include <fmt/format.h>

#include <algorithm>

namespace mdfs::store {
namespace {

double percent_of(std::uint64_t used_blocks, std::uint64_t data_blocks) {
  return data_blocks == 0 ? 100 : 100 * static_cast<double>(used_blocks) / static_cast<double>(data_blocks);
}

}  // namespace

std::optional<std::string> Fullness::note_use(std::size_t disk, const std::string& name, std::uint64_t used_blocks,
                                              std::uint64_t data_blocks) {
  Disk& state = disks_[disk];
  const double percent = percent_of(used_blocks, data_blocks);
  while (state.said > 0 && percent < kThresholdsPercent[state.said - 1] - kForgetPercent) --state.said;
  if (state.fallback_percent && percent < *state.fallback_percent - kForgetPercent) state.fallback_percent.reset();
  const std::size_t before = state.said;
  while (state.said < kThresholdsPercent.size() && percent >= kThresholdsPercent[state.said]) ++state.said;
  if (state.said == before) return std::nullopt;
  return fmt::format("disk {} ({}) is {:.0f} % full{}", disk, name, percent,
                     disks_.size() > 1 ? "; when it is full its new extents go to other disks" : "");
}

std::optional<std::string> Fullness::note_fallback(std::size_t disk, const std::string& name, std::uint64_t used_blocks,
                                                   std::uint64_t data_blocks) {
  Disk& state = disks_[disk];
  ++state.fallback_runs;
  if (state.fallback_percent) return std::nullopt;
  state.fallback_percent = std::min<double>(percent_of(used_blocks, data_blocks), kThresholdsPercent[0]);
  return fmt::format("disk {} ({}) is full: its new extents go to other disks", disk, name);
}

}  // namespace mdfs::store
