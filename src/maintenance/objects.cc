// Questions of long work about one object.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/objects.h"

#include <fmt/format.h>

#include <memory>

#include "format/inode.h"
#include "geometry/copies.h"

namespace mdfs::maintenance {

Result<layout::Fragmentation> data_fragmentation(MaintainedVolume& volume, Ino ino) {
  MDFS_TRY_ASSIGN(const auto open, volume.open_object(ino));
  return volume.engine().fragmentation(*open, {});
}

Result<layout::DefragPlan> plan_defrag(MaintainedVolume& volume, Ino ino, std::uint64_t from) {
  MDFS_TRY_ASSIGN(const auto open, volume.open_object(ino));
  return volume.engine().plan_defrag(*open, from);
}

Result<engine::LayoutRows> layout_rows(MaintainedVolume& volume, Ino ino, const engine::LayoutRequest& request) {
  MDFS_TRY_ASSIGN(const auto open, volume.open_object(ino));
  return volume.engine().layout(*open, request, {});
}

Result<bool> has_strips(MaintainedVolume& volume, Ino ino) {
  MDFS_TRY_ASSIGN(const auto any,
                  volume.store().scan({ino, MDFS_KIND_STRIP, 0}, {ino, MDFS_KIND_STRIP, UINT64_MAX}, 1));
  return !any.empty();
}

namespace {

using ChangePlacement = std::function<geometry::Placement(const geometry::Placement&)>;
using DiskOf = unsigned (*)(const geometry::Placement&, unsigned rank, std::uint64_t base, const geometry::Coord&);

Result<DiskOfExtent> disks_of(MaintainedVolume& volume, Ino ino, const ChangePlacement& change, DiskOf disk_of) {
  MDFS_TRY_ASSIGN(const auto item, volume.store().get({ino, MDFS_KIND_INODE, 0}));
  if (!item) return Error{Errc::kNotFound, fmt::format("object {}", ino)};
  MDFS_TRY_ASSIGN(const format::Inode inode, format::decode_inode(*item));
  MDFS_TRY_ASSIGN(auto placement, volume.placements().get(inode.placement));
  if (change) placement = std::make_shared<const geometry::Placement>(change(*placement));
  unsigned rank = 1;
  if (inode.is_image()) {
    MDFS_TRY_ASSIGN(const geometry::Geometry geometry, volume.image_geometry(ino));
    rank = geometry.rank;
  }
  return DiskOfExtent([placement, rank, disk_of, base = inode.base](const geometry::Coord& extent) {
    return disk_of(*placement, rank, base, extent);
  });
}

}  // namespace

Result<DiskOfExtent> disks_of_extents(MaintainedVolume& volume, Ino ino, const ChangePlacement& change) {
  return disks_of(volume, ino, change, &geometry::disk_of);
}

Result<DiskOfExtent> disks_of_copies(MaintainedVolume& volume, Ino ino, const ChangePlacement& change) {
  return disks_of(volume, ino, change, &geometry::second_disk_of);
}

}  // namespace mdfs::maintenance
