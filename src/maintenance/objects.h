// Questions of long work about one object: the places of its extents or cells, their fragmentation, and their disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "engine/map/layout.h"
#include "geometry/geometry.h"
#include "geometry/placement.h"
#include "layout/defrag_plan.h"
#include "layout/fragmentation.h"
#include "volume/maintained_volume.h"

namespace mdfs::maintenance {

using volume::Ino;
using volume::MaintainedVolume;

// By the tree, as all functions here; dirty bytes do not count. Also for files, whose cells count as extents.
Result<layout::Fragmentation> data_fragmentation(MaintainedVolume& volume, Ino ino);
Result<layout::DefragPlan> plan_defrag(MaintainedVolume& volume, Ino ino, std::uint64_t from);
// Some rows of the layout of an image or file.
Result<engine::LayoutRows> layout_rows(MaintainedVolume& volume, Ino ino, const engine::LayoutRequest& request);
// True if bytes of the image are in strips.
Result<bool> has_strips(MaintainedVolume& volume, Ino ino);

// The disk that the placement of an object, or `change` of it, names for an extent. An open object may use an older
// placement. kNotFound: it has been deleted.
using DiskOfExtent = std::function<unsigned(const geometry::Coord&)>;
Result<DiskOfExtent> disks_of_extents(
    MaintainedVolume& volume, Ino ino,
    const std::function<geometry::Placement(const geometry::Placement&)>& change = {});

// The same of the second copy of an extent, where the placement has two disks or more; else as of the extent.
Result<DiskOfExtent> disks_of_copies(MaintainedVolume& volume, Ino ino,
                                     const std::function<geometry::Placement(const geometry::Placement&)>& change = {});

}  // namespace mdfs::maintenance
