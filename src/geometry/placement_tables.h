// Tables of offsets for equal disks, found by tools/placement_search.cc, and a rule for more disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace mdfs::geometry {

inline constexpr unsigned kLargestTable = 64;    // slots with a table in two dimensions
inline constexpr unsigned kLargestTable3d = 32;  // in three; pairs of offsets up to 64

struct PlacementTables {
  std::vector<std::uint16_t> row;    // R
  std::vector<std::uint16_t> plane;  // Q
};

// R for images of rank 2, `slots` entries. slots >= 1. Beyond kLargestTable: multiples of rule_offset.
std::vector<std::uint16_t> table_2d(unsigned slots);
// R and Q for images of rank 3. Beyond kLargestTable3d: multiples of the best pair of offsets; beyond kLargestTable: of
// the two rule offsets.
PlacementTables tables_3d(unsigned slots);

// T and U for images of rank 4 and 5, coprime with `slots`: each index of such an axis is on all slots in turn. Beyond
// kLargestTable: two rule offsets.
struct SlowOffsets {
  unsigned fourth = 0;
  unsigned fifth = 0;
};
SlowOffsets slow_offsets(unsigned slots);

// offset * i mod slots, for i in 0..slots - 1.
std::vector<std::uint16_t> multiples(unsigned slots, std::uint64_t offset);

// The multiplier coprime with `slots` that is nearest to slots * fraction. With the golden ratio's square
// (kRowFraction) rows stay far apart, as in Fibonacci hashing; in three dimensions the plastic number does the same for
// two offsets (the R2 sequence of Roberts).
unsigned rule_offset(unsigned slots, double fraction);
inline constexpr double kRowFraction = 0.38196601125010515;      // 1 / golden ratio^2
inline constexpr double kRowFraction3d = 0.7548776662466927;     // 1 / plastic number
inline constexpr double kPlaneFraction3d = 0.56984029099805327;  // 1 / plastic number^2
inline constexpr double kFourthFraction = 0.41421356237309503;   // square root of 2, less 1
inline constexpr double kFifthFraction = 0.23606797749978969;    // square root of 5, less 2

}  // namespace mdfs::geometry
