// Disks of the volume that come and go.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <optional>
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

Result<engine::LayoutRows> VolumeImpl::layout_rows(Ino ino, const engine::LayoutRequest& request) {
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ContentUse use, contents_.use(*pin));
  return engine_->layout(*use, request, {});
}

namespace {

Result<VolumeImpl::UnitPlace> place_of_cell(std::uint64_t cell, ConstBytes value, std::uint32_t block_size) {
  MDFS_TRY_ASSIGN(const format::FileCell decoded, format::decode_file_cell(value, block_size));
  VolumeImpl::UnitPlace unit{{cell}, 0, 0, {}};
  for (const format::FileRun& run : decoded.runs) {
    if (run.address.disk >= MDFS_MAX_DISKS) return Error{Errc::kCorrupt, "file-cell.disk"};
    unit.disks |= std::uint64_t{1} << run.address.disk;
    unit.blocks += run.blocks();
    std::uint64_t& end = unit.ends[run.address.disk];
    end = std::max(end, run.address.block + run.blocks());
  }
  return unit;
}

VolumeImpl::UnitPlace place_of_extent(const layout::ExtentPlace& place, std::uint32_t block_size) {
  return {
      place.index, std::uint64_t{1} << place.disk, ceil_div(place.stored_bytes, block_size), {{place.disk, place.end}}};
}

}  // namespace

// What has no data, or is gone, is neither.
Result<std::optional<bool>> VolumeImpl::is_image_or_file(std::uint64_t object) {
  MDFS_TRY_ASSIGN(const auto item, store_->get({object, MDFS_KIND_INODE, 0}));
  if (!item) return std::optional<bool>();
  MDFS_TRY_ASSIGN(const format::Inode inode, format::decode_inode(*item));
  return S_ISREG(inode.mode) ? std::optional(inode.is_image()) : std::nullopt;
}

Result<VolumeImpl::UnitPlaces> VolumeImpl::next_units(std::uint64_t object, const engine::LayoutCursor& from) {
  UnitPlaces found;
  found.at_end = true;
  MDFS_TRY_ASSIGN(const std::optional<bool> is_image, is_image_or_file(object));
  if (!is_image) return found;
  if (*is_image) {
    MDFS_TRY_ASSIGN(const engine::LayoutRows extents,
                    layout_rows(object, {.from = from, .most = kUnitsAtOnce, .of = engine::LayoutOf::kExtents}));
    for (const layout::ExtentPlace& place : extents.rows)
      found.units.push_back(place_of_extent(place, store_->block_size()));
    found.next = extents.next;
    found.at_end = extents.at_end;
    return found;
  }
  MDFS_TRY_ASSIGN(
      const std::vector<store::Item> items,
      store_->scan({object, MDFS_KIND_FILE_CELL, from.page}, {object, MDFS_KIND_FILE_CELL, UINT64_MAX}, kUnitsAtOnce));
  for (const store::Item& item : items) {
    MDFS_TRY_ASSIGN(const UnitPlace unit, place_of_cell(item.key.offset, item.value, store_->block_size()));
    found.units.push_back(unit);
  }
  found.at_end = items.size() < kUnitsAtOnce || items.back().key.offset == UINT64_MAX;
  if (!found.at_end) found.next.page = items.back().key.offset + 1;
  return found;
}

Result<std::vector<VolumeImpl::UnitPlace>> VolumeImpl::unit_places(std::uint64_t object,
                                                                   const std::vector<geometry::Coord>& units) {
  std::vector<UnitPlace> places;
  MDFS_TRY_ASSIGN(const std::optional<bool> is_image, is_image_or_file(object));
  if (!is_image) return places;
  if (*is_image) {
    const Pin pin = table_.pin(object);
    MDFS_TRY_ASSIGN(const ContentUse use, contents_.use(*pin));
    MDFS_TRY_ASSIGN(const std::vector<layout::ExtentPlace> extents, engine_->places_of(*use, units));
    for (const layout::ExtentPlace& extent : extents) places.push_back(place_of_extent(extent, store_->block_size()));
    return places;
  }
  for (const geometry::Coord& unit : units) {
    MDFS_TRY_ASSIGN(const auto item, store_->get({object, MDFS_KIND_FILE_CELL, unit[0]}));
    if (!item) continue;
    MDFS_TRY_ASSIGN(const UnitPlace place, place_of_cell(unit[0], *item, store_->block_size()));
    places.push_back(place);
  }
  return places;
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
