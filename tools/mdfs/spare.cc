// Room for the rebuild of lost disks.
// SPDX-License-Identifier: Apache-2.0
#include "spare.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "volume_text.h"

namespace mdfs::tools {
namespace {

struct Disks {
  unsigned usable = 0, lost = 0;
};

Disks disks_of(const mdfs_ioc_volume& volume) {
  Disks disks;
  const std::uint32_t count = std::min<std::uint32_t>(volume.disk_count, MDFS_IOC_MAX_DISKS);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto state = static_cast<DiskState>(volume.disks[i].state);
    if (state == DiskState::kHealthy)
      ++disks.usable;
    else if (state != DiskState::kNone && state != DiskState::kDraining && state != DiskState::kDeleted)
      ++disks.lost;
  }
  return disks;
}

// Disks that may still be lost with room for their rebuild.
unsigned left_of(const mdfs_ioc_volume& volume) {
  return volume.spare_disks - std::min(volume.spare_disks, disks_of(volume).lost);
}

std::string disks_text(unsigned disks) { return fmt::format("{} lost disk{}", disks, disks == 1 ? "" : "s"); }

bool awaits_rebuild(const mdfs_ioc_volume& volume) { return (volume.flags & MDFS_VOLUME_TO_REBUILD) != 0; }

// How much a rebuild needs is known when it has ended: until then all is kept for it.
std::uint64_t lacking_bytes(const mdfs_ioc_volume& volume) {
  if (awaits_rebuild(volume)) return 0;
  return (volume.spare_blocks - std::min(volume.spare_blocks, volume.free_blocks)) * volume.block_size;
}

}  // namespace

std::optional<std::string> spare_line(const mdfs_ioc_volume& volume) {
  if (volume.spare_disks == 0) return std::nullopt;
  const unsigned left = left_of(volume);
  if (awaits_rebuild(volume))
    return fmt::format("spare: {} are kept until the rebuild of what is lost has ended",
                       format_size(volume.spare_blocks * volume.block_size));
  if (left == 0) return fmt::format("spare: the room for the rebuild of {} is in use", disks_text(volume.spare_disks));
  const std::string of = left == volume.spare_disks ? "" : fmt::format(" of {}", volume.spare_disks);
  return fmt::format("spare: {} stay free for the rebuild of {}{}",
                     format_size(volume.spare_blocks * volume.block_size), disks_text(left), of);
}

std::optional<std::string> spare_error(const mdfs_ioc_volume& volume) {
  const unsigned left = left_of(volume);
  if (left == 0) return std::nullopt;
  if (disks_of(volume).usable < left + 2)
    return fmt::format(
        "no room can be kept for the rebuild of {}: second copies need two disks beside them; add a disk, "
        "or set less with 'mdfs volume spare'",
        disks_text(left));
  if (lacking_bytes(volume) == 0) return std::nullopt;
  return fmt::format(
      "{} more must be free for the rebuild of {}: delete files, add a disk, or set less with 'mdfs "
      "volume spare'",
      format_size(lacking_bytes(volume)), disks_text(left));
}

nlohmann::ordered_json spare_json(const mdfs_ioc_volume& volume) {
  return {{"spare_disks", volume.spare_disks},
          {"spare_disks_left", left_of(volume)},
          {"spare_bytes", volume.spare_blocks * volume.block_size},
          {"spare_lacking_bytes", lacking_bytes(volume)}};
}

}  // namespace mdfs::tools
