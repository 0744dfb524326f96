// Tables for images that get more disks, where only the share of the new disks moves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "geometry/placement.h"

namespace mdfs::geometry {

// The new tables may be this much worse than the best tables for a fresh image, if they suit the kept extents better.
inline constexpr double kGrowthAllowance = 1.03;

// The disk of an extent of an image that was stored by `before`, once balancing has moved to each disk in `taking` what
// `after` gives to it. taking: bit i is disk i. `extent` is slowest axis first.
unsigned disk_after_growth(const Placement& before, const Placement& after, std::uint64_t taking, unsigned rank,
                           std::uint64_t base, const Coord& extent);

// Spread of typical windows after that: mean of (time of the busiest disk) / (the time if each extent went to the
// disk that finishes it first), a disk being as fast as it has slots in `after`. 1 is ideal. The windows are those of
// placement_score.h, boxes and slices in three dimensions, at positions spread over the period of both.
double growth_score(const Placement& before, const Placement& after, std::uint64_t taking, unsigned rank);

// The placement for `disk_list` (as of default_placement()) with the best growth_score(). The search tries the general
// tables and all multiples that serve fresh images within kGrowthAllowance of the best, each with the orders of slots
// in which the taking disks are apart by 1, 2, 3 .. slots. On unequal disks, and on more than kLargestTable slots,
// fewer orders and tables are tried. With every choice, a slot of a taking disk takes a K-th of the extents.
Placement grown_placement(const Placement& before, unsigned rank, const std::vector<std::uint16_t>& disk_list,
                          std::uint64_t taking);

}  // namespace mdfs::geometry
