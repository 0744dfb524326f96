// What long work does with one object: its extents or cells, where they lie, and where they belong.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "engine/map/layout.h"
#include "geometry/geometry.h"
#include "geometry/placement.h"
#include "layout/defrag_plan.h"
#include "layout/fragmentation.h"
#include "volume/maintained_volume.h"
#include "volume/records.h"

namespace mdfs::maintenance {

using volume::Ino;
using volume::MaintainedVolume;

// By the tree, as all here: what is dirty is left alone. Of files as well, whose cells count as extents.
Result<layout::Fragmentation> data_fragmentation(MaintainedVolume& volume, Ino ino);
Result<layout::DefragPlan> plan_defrag(MaintainedVolume& volume, Ino ino, std::uint64_t from);
// Some rows of the layout of an image or file.
Result<engine::LayoutRows> layout_rows(MaintainedVolume& volume, Ino ino, const engine::LayoutRequest& request);
// Are bytes of the image in strips?
Result<bool> has_strips(MaintainedVolume& volume, Ino ino);

// A cell of a file, or an extent of an image that is not in strips alone, and the disks on which it has blocks.
struct UnitPlace {
  geometry::Coord unit{};
  std::uint64_t disks = 0;  // bits
  std::uint64_t blocks = 0;
  std::map<unsigned, std::uint64_t> ends;  // behind the highest block on each of these disks

  bool reaches_behind(unsigned disk, std::uint64_t block) const {
    const auto end = ends.find(disk);
    return end != ends.end() && end->second > block;
  }
};
struct UnitPlaces {
  std::vector<UnitPlace> units;
  engine::LayoutCursor next;  // where the next ones begin
  bool at_end = false;        // there are none
};
inline constexpr std::size_t kUnitsListedAtOnce = 1024;
// At most kUnitsListedAtOnce of them from a position on: an object may have more of them than fit in memory. None for
// an object without data.
Result<UnitPlaces> next_units(MaintainedVolume& volume, std::uint64_t object, const engine::LayoutCursor& from);
// Those among `units` that have blocks now.
Result<std::vector<UnitPlace>> unit_places(MaintainedVolume& volume, std::uint64_t object,
                                           const std::vector<geometry::Coord>& units);

// The disk that the placement of an object, or one made of that, names for a unit. kNotFound: it has been deleted.
using DiskOfUnit = std::function<unsigned(const geometry::Coord&)>;
Result<DiskOfUnit> disks_of_units(MaintainedVolume& volume, std::uint64_t object,
                                  const std::function<geometry::Placement(const geometry::Placement&)>& change = {});

}  // namespace mdfs::maintenance
