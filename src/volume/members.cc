// Disks of the volume that come and go.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <map>
#include <utility>

#include "base/checked.h"
#include "format/file_cell.h"
#include "format/inode.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {

void VolumeImpl::members_changed() {
  whole_ = store_->is_whole();
  placements_.members_changed();
  ++member_changes_;
  file_placement_ = 0;
  disk_statistics_.members_changed();
}

void VolumeImpl::placements_changed() {
  members_changed();
  engine_->forget_all_returns();
  // So that they are opened anew with the placement as it is now; what is open keeps its own until it is closed.
  contents_.close_idle(0);
}

Result<std::vector<unsigned>> VolumeImpl::add_disks(std::vector<store::JoiningDisk> disks) {
  MDFS_TRY(check_writable());
  auto indexes = store_->add_disks(std::move(disks));
  members_changed();
  return indexes;
}

Status VolumeImpl::set_disk_weight(unsigned disk, std::uint16_t weight) {
  MDFS_TRY(check_writable());
  Status status = store_->set_weight(disk, weight);
  members_changed();
  return status;
}

Status VolumeImpl::keep_disk(unsigned disk) {
  MDFS_TRY(check_writable());
  const auto evacuation = operations_.status(OperationKind::kEvacuate);
  if (evacuation.ok() && evacuation->running() && evacuation->parameters[0] == disk)
    return Error{Errc::kBusy, "the disk is being emptied: cancel that first"};
  Status status = store_->set_leaving(disk, false, nullptr);
  members_changed();
  return status;
}

Result<std::vector<engine::ExtentPlace>> VolumeImpl::places_of(Ino ino) {
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ContentUse use, contents_.use(*pin));
  return engine_->layout(*use);
}

Result<std::vector<VolumeImpl::UnitPlace>> VolumeImpl::unit_places(std::uint64_t object) {
  constexpr std::size_t kAtOnce = 256;
  std::vector<UnitPlace> units;
  MDFS_TRY_ASSIGN(const auto item, store_->get({object, MDFS_KIND_INODE, 0}));
  if (!item) return units;
  MDFS_TRY_ASSIGN(const format::Inode inode, format::decode_inode(*item));
  if (!S_ISREG(inode.mode)) return units;
  if (inode.is_image()) {
    MDFS_TRY_ASSIGN(const std::vector<engine::ExtentPlace> places, places_of(object));
    std::map<geometry::Coord, std::size_t> found;
    for (const engine::ExtentPlace& place : places) {
      if (place.in_strip) continue;
      const auto [at, is_new] = found.emplace(place.index, units.size());
      if (is_new) units.push_back({place.index, 0, 0});
      units[at->second].disks |= std::uint64_t{1} << place.disk;
      units[at->second].blocks += ceil_div(place.stored_bytes, store_->block_size());
    }
    return units;
  }
  for (std::uint64_t cell = 0;;) {
    MDFS_TRY_ASSIGN(
        const std::vector<store::Item> items,
        store_->scan({object, MDFS_KIND_FILE_CELL, cell}, {object, MDFS_KIND_FILE_CELL, UINT64_MAX}, kAtOnce));
    for (const store::Item& one : items) {
      MDFS_TRY_ASSIGN(const format::FileCell decoded, format::decode_file_cell(one.value, store_->block_size()));
      UnitPlace& unit = units.emplace_back();
      unit.unit = {one.key.offset};
      for (const format::FileRun& run : decoded.runs) {
        if (run.address.disk >= MDFS_MAX_DISKS) return Error{Errc::kCorrupt, "file-cell.disk"};
        unit.disks |= std::uint64_t{1} << run.address.disk;
        unit.blocks += run.blocks();
      }
    }
    if (items.size() < kAtOnce || items.back().key.offset == UINT64_MAX) return units;
    cell = items.back().key.offset + 1;
  }
}

Result<VolumeImpl::DiskOfUnit> VolumeImpl::disks_of_units(
    std::uint64_t object, const std::function<geometry::Placement(const geometry::Placement&)>& change) {
  MDFS_TRY_ASSIGN(const auto item, store_->get({object, MDFS_KIND_INODE, 0}));
  if (!item) return Error{Errc::kNotFound, fmt::format("object {}", object)};
  MDFS_TRY_ASSIGN(const format::Inode inode, format::decode_inode(*item));
  MDFS_TRY_ASSIGN(auto placement, placements_.get(inode.placement));
  if (change) placement = std::make_shared<const geometry::Placement>(change(*placement));
  unsigned rank = 1;
  if (inode.is_image()) {
    MDFS_TRY_ASSIGN(const geometry::Geometry geometry, image_geometry(object));
    rank = geometry.rank;
  }
  return DiskOfUnit([placement, rank, base = inode.base](const geometry::Coord& unit) {
    return geometry::disk_of(*placement, rank, base, unit);
  });
}

}  // namespace mdfs::volume
