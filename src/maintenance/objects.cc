// What long work asks of one object.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/objects.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "format/file_cell.h"
#include "format/inode.h"

namespace mdfs::maintenance {
namespace {

Result<UnitPlace> place_of_cell(std::uint64_t cell, ConstBytes value, std::uint32_t block_size) {
  MDFS_TRY_ASSIGN(const format::FileCell decoded, format::decode_file_cell(value, block_size));
  UnitPlace unit{{cell}, 0, 0, {}};
  for (const format::FileRun& run : decoded.runs) {
    if (run.address.disk >= MDFS_MAX_DISKS) return Error{Errc::kCorrupt, "file-cell.disk"};
    unit.disks |= std::uint64_t{1} << run.address.disk;
    unit.blocks += run.blocks();
    std::uint64_t& end = unit.ends[run.address.disk];
    end = std::max(end, run.address.block + run.blocks());
  }
  return unit;
}

UnitPlace place_of_extent(const layout::ExtentPlace& place, std::uint32_t block_size) {
  return {
      place.index, std::uint64_t{1} << place.disk, ceil_div(place.stored_bytes, block_size), {{place.disk, place.end}}};
}

// What has no data, or is gone, is neither.
Result<std::optional<bool>> is_image_or_file(store::Store& store, std::uint64_t object) {
  MDFS_TRY_ASSIGN(const auto item, store.get({object, MDFS_KIND_INODE, 0}));
  if (!item) return std::optional<bool>();
  MDFS_TRY_ASSIGN(const format::Inode inode, format::decode_inode(*item));
  return S_ISREG(inode.mode) ? std::optional(inode.is_image()) : std::nullopt;
}

}  // namespace

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

Result<UnitPlaces> next_units(MaintainedVolume& volume, std::uint64_t object, const engine::LayoutCursor& from) {
  UnitPlaces found;
  found.at_end = true;
  MDFS_TRY_ASSIGN(const std::optional<bool> is_image, is_image_or_file(volume.store(), object));
  if (!is_image) return found;
  if (*is_image) {
    MDFS_TRY_ASSIGN(
        const engine::LayoutRows extents,
        layout_rows(volume, object, {.from = from, .most = kUnitsListedAtOnce, .of = engine::LayoutOf::kExtents}));
    for (const layout::ExtentPlace& place : extents.rows)
      found.units.push_back(place_of_extent(place, volume.store().block_size()));
    found.next = extents.next;
    found.at_end = extents.at_end;
    return found;
  }
  MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                  volume.store().scan({object, MDFS_KIND_FILE_CELL, from.page},
                                      {object, MDFS_KIND_FILE_CELL, UINT64_MAX}, kUnitsListedAtOnce));
  for (const store::Item& item : items) {
    MDFS_TRY_ASSIGN(const UnitPlace unit, place_of_cell(item.key.offset, item.value, volume.store().block_size()));
    found.units.push_back(unit);
  }
  found.at_end = items.size() < kUnitsListedAtOnce || items.back().key.offset == UINT64_MAX;
  if (!found.at_end) found.next.page = items.back().key.offset + 1;
  return found;
}

Result<std::vector<UnitPlace>> unit_places(MaintainedVolume& volume, std::uint64_t object,
                                           const std::vector<geometry::Coord>& units) {
  std::vector<UnitPlace> places;
  MDFS_TRY_ASSIGN(const std::optional<bool> is_image, is_image_or_file(volume.store(), object));
  if (!is_image) return places;
  if (*is_image) {
    MDFS_TRY_ASSIGN(const auto open, volume.open_object(object));
    MDFS_TRY_ASSIGN(const std::vector<layout::ExtentPlace> extents, volume.engine().places_of(*open, units));
    for (const layout::ExtentPlace& extent : extents)
      places.push_back(place_of_extent(extent, volume.store().block_size()));
    return places;
  }
  for (const geometry::Coord& unit : units) {
    MDFS_TRY_ASSIGN(const auto item, volume.store().get({object, MDFS_KIND_FILE_CELL, unit[0]}));
    if (!item) continue;
    MDFS_TRY_ASSIGN(const UnitPlace place, place_of_cell(unit[0], *item, volume.store().block_size()));
    places.push_back(place);
  }
  return places;
}

Result<DiskOfUnit> disks_of_units(MaintainedVolume& volume, std::uint64_t object,
                                  const std::function<geometry::Placement(const geometry::Placement&)>& change) {
  MDFS_TRY_ASSIGN(const auto item, volume.store().get({object, MDFS_KIND_INODE, 0}));
  if (!item) return Error{Errc::kNotFound, fmt::format("object {}", object)};
  MDFS_TRY_ASSIGN(const format::Inode inode, format::decode_inode(*item));
  MDFS_TRY_ASSIGN(auto placement, volume.placements().get(inode.placement));
  if (change) placement = std::make_shared<const geometry::Placement>(change(*placement));
  unsigned rank = 1;
  if (inode.is_image()) {
    MDFS_TRY_ASSIGN(const geometry::Geometry geometry, volume.image_geometry(object));
    rank = geometry.rank;
  }
  return DiskOfUnit([placement, rank, base = inode.base](const geometry::Coord& unit) {
    return geometry::disk_of(*placement, rank, base, unit);
  });
}

}  // namespace mdfs::maintenance
