// Scores of a placement: how evenly it spreads windows over its slots. The search for tables uses them.
// ratio(window) = extents on the window's busiest slot / ceil(extents / K). Tables are R (rows) and Q (planes) of
// placement.h, K = their length; columns shift by one slot each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

namespace mdfs::geometry {

using OffsetTable = std::span<const std::uint16_t>;

inline constexpr unsigned kTypicalSide2d = 16;  // extents
inline constexpr unsigned kTypicalSide3d = 8;
inline constexpr unsigned kTypicalAspect = 4;  // longest side over shortest, at most

// Mean ratio over all positions and all windows of 2..16 by 2..16 extents of aspect at most 4:1. 1 is ideal.
double typical_2d(OffsetTable row);
// The largest (busiest slot - ceil(extents / K)) over all windows of up to K x K extents. For permutations and offsets
// coprime with K that is the largest over windows of any size, since each whole row or column of K adds one extent to
// every slot.
unsigned worst_excess_2d(OffsetTable row);

// The same windows on unequal disks: slot names the disk of each slot, and a disk named twice is twice as fast. Mean of
// (time of the busiest disk) / (the time if each extent went to the disk that finishes it first).
double weighted_typical_2d(OffsetTable row, std::span<const std::uint16_t> slot);

// best[n]: the time of n extents, 0..extents, if each goes to the disk that finishes it first. A disk of weight w takes
// 1 / w for an extent, one of weight 0 none.
std::vector<double> best_times(const std::vector<double>& weight, std::size_t extents);

// Mean ratio over all positions and all boxes of 2..8 extents a side of aspect at most 4:1.
double typical_3d(OffsetTable row, OffsetTable plane);
// Mean ratio over slices: boxes one extent thick along one axis, 2..8 extents along the others.
double slices_3d(OffsetTable row, OffsetTable plane);

// Mean ratio over windows that reach along one slower axis, of step `offset`, and along at most two of the others:
// lines, planes and boxes of 2..8 extents along each of these axes, of aspect at most 4:1. Each kind of window counts
// alike.
double typical_slow(OffsetTable row, OffsetTable plane, unsigned offset);
// The same for planes along two slower axes.
double typical_slow_plane(unsigned slots, unsigned one, unsigned other);

// Scores a grid of a given size over all its windows.
struct GridScore {
  std::uint64_t whole = 0;  // extents of the whole grid on its busiest slot
  std::uint64_t sum = 0;    // over all windows of the grid: extents on their busiest slot
  auto operator<=>(const GridScore&) const = default;
};

// Computes the score of a grid for tables. A value; no thread contract.
class GridScorer {
 public:
  explicit GridScorer(const std::array<std::uint64_t, 3>& grid) : grid_(grid) {}  // planes, rows, columns
  GridScore score(OffsetTable row, OffsetTable plane) const;

 private:
  std::array<std::uint64_t, 3> grid_;
};

}  // namespace mdfs::geometry
