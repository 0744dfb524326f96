// Items of an image: its geometry and its placement. Units and order of axes: geometry.h, placement.h in src/geometry.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "format/extents.h"
#include "geometry/geometry.h"
#include "geometry/placement.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

// Largest number of slots of a placement, so that its item fits MDFS_MAX_ITEM.
inline constexpr unsigned kMaxPlacementSlots = (MDFS_MAX_ITEM - sizeof(mdfs_placement)) / 6;

// The value of the item. The geometry must have passed geometry::check.
ByteVector encode(const geometry::Geometry& geometry);
// The same, replacing an item of this image and keeping its reserved bytes.
ByteVector encode_over(const geometry::Geometry& geometry, ConstBytes old);
// Checks: geometry.length, geometry.rank (1..5), geometry.type, geometry.channels, geometry.codec, geometry.level
// (of a pyramid: 0), geometry.shape (zero beyond the rank; no axis but the slowest is 0; at most 2^62 bytes),
// geometry.extent (1.. on every axis, zero beyond the rank; at most MDFS_MAX_EXTENT bytes), geometry.axis (one
// letter a..z an axis, each once), geometry.spacing (finite, not negative).
// The result is safe for arithmetic; geometry::check may have further rules.
Result<geometry::Geometry> decode_geometry(ConstBytes value);

// Of the tables of this image's extents.
ExtentTableShape table_shape(const geometry::Geometry& geometry);

// The value of the item. At most kMaxPlacementSlots slots (else abort).
ByteVector encode(const geometry::Placement& placement);
// Checks: placement.length, placement.disks (1..64), placement.slots (disks..kMaxPlacementSlots), placement.tables
// (rows and planes below the number of slots, disks below 64).
Result<geometry::Placement> decode_placement(ConstBytes value);

}  // namespace mdfs::format
