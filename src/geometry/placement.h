// Which disk holds an extent: disk = slot[(base + x + R[y mod K] + Q[z mod K] + T * v + U * w) mod K], for the extent
// with index w, v, z, y, x in the grid, of which an image has the last ones (reason and measurements: doc/DESIGN.md;
// normative: FORMAT.md). Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::geometry {

inline constexpr unsigned kMaxSlots = 4096;

// The tables of one placement, shared by the images that use it. Immutable once made.
struct Placement {
  unsigned disks = 1;                // k
  std::vector<std::uint16_t> row;    // R, K entries
  std::vector<std::uint16_t> plane;  // Q, K entries
  std::vector<std::uint16_t> slot;   // K entries: disk index of the volume
  std::uint16_t fourth = 0;  // T, U: slots from one step to the next along the fourth and the fifth axis from the
  std::uint16_t fifth = 0;   // fastest, below K; 0 unless made for such images
  bool operator==(const Placement&) const = default;
  unsigned slots() const { return static_cast<unsigned>(slot.size()); }
};

// Checks that there are 1..kMaxSlots slots, tables of equal length, entries in range, and that the slots name `disks`
// disks. Else kCorrupt, because placements come from disks.
Status check(const Placement& placement, unsigned volume_disks);

// The slot of an extent, below placement.slots().
unsigned slot_of(const Placement& placement, unsigned rank, std::uint64_t base, const Coord& extent);
// The disk of an extent, by its index in the volume. `extent` is slowest axis first. `base` tells images apart: any
// number; it shifts the slots. The placement has passed check().
unsigned disk_of(const Placement& placement, unsigned rank, std::uint64_t base, const Coord& extent);

// The best placement known for these disks, from the tables of placement_tables.h. disk_list has the disk of each slot,
// 1..kMaxSlots of them; a disk named twice gets twice the extents, and the offset is chosen for that. rank 1..5.
// With `grid` (extents along each axis) an image of fewer extents than twice the slots gets tables for that grid: no
// two extents share a slot while there are enough.
Placement default_placement(unsigned rank, const std::vector<std::uint16_t>& disk_list,
                            const std::optional<Coord>& grid = std::nullopt);
// Disk list of unequal disks: disk i appears weights[i] times, spread evenly (smooth weighted round robin; among
// equals the lower index first). Weight 0 leaves a disk out. kInvalidArgument: no weight at all, or a sum over
// kMaxSlots.
Result<std::vector<std::uint16_t>> weighted_disk_list(std::span<const unsigned> weights);
// R[y] = row_offset * y, Q[z] = plane_offset * z, both modulo the number of slots. T = U = 0.
Placement offset_placement(const std::vector<std::uint16_t>& disk_list, unsigned row_offset, unsigned plane_offset);

}  // namespace mdfs::geometry
