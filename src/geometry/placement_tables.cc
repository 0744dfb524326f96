// Looks up the generated tables.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/placement_tables.h"

#include <array>
#include <cmath>
#include <numeric>
#include <span>

#include "base/check.h"

namespace mdfs::geometry {
namespace {

struct OffsetPair {
  std::uint8_t row;
  std::uint8_t plane;
};

struct SlowPair {
  std::uint8_t fourth;
  std::uint8_t fifth;
};

#include "geometry/placement_tables.inc"

static_assert(kRows2d.size() == kLargestTable + 1);
static_assert(kRows3d.size() == kLargestTable3d + 1 && kPlanes3d.size() == kLargestTable3d + 1);
static_assert(kSlowOffsets.size() == kLargestTable + 1);
static_assert(kOffsets3d.size() == kLargestTable - kLargestTable3d);

std::vector<std::uint16_t> wide(std::span<const std::uint8_t> table) { return {table.begin(), table.end()}; }

}  // namespace

std::vector<std::uint16_t> multiples(unsigned slots, std::uint64_t offset) {
  std::vector<std::uint16_t> table(slots);
  for (unsigned i = 0; i < slots; ++i) table[i] = static_cast<std::uint16_t>(offset % slots * i % slots);
  return table;
}

unsigned rule_offset(unsigned slots, double fraction) {
  MDFS_CHECK(slots > 0 && fraction > 0 && fraction < 1);
  const auto ideal = static_cast<int>(std::lround(slots * fraction));
  const auto limit = static_cast<int>(slots);
  for (int distance = 0; distance < limit; ++distance)
    for (const int candidate : {ideal - distance, ideal + distance})
      if (candidate > 0 && candidate < limit && std::gcd(candidate, limit) == 1)
        return static_cast<unsigned>(candidate);
  return 0;  // one slot
}

std::vector<std::uint16_t> table_2d(unsigned slots) {
  MDFS_CHECK(slots > 0);
  if (slots <= kLargestTable) return wide(kRows2d[slots]);
  return multiples(slots, rule_offset(slots, kRowFraction));
}

PlacementTables tables_3d(unsigned slots) {
  MDFS_CHECK(slots > 0);
  if (slots <= kLargestTable3d) return {wide(kRows3d[slots]), wide(kPlanes3d[slots])};
  if (slots <= kLargestTable) {
    const OffsetPair& pair = kOffsets3d[slots - kLargestTable3d - 1];
    return {multiples(slots, pair.row), multiples(slots, pair.plane)};
  }
  return {multiples(slots, rule_offset(slots, kRowFraction3d)), multiples(slots, rule_offset(slots, kPlaneFraction3d))};
}

SlowOffsets slow_offsets(unsigned slots) {
  MDFS_CHECK(slots > 0);
  if (slots <= kLargestTable) return {kSlowOffsets[slots].fourth, kSlowOffsets[slots].fifth};
  return {rule_offset(slots, kFourthFraction), rule_offset(slots, kFifthFraction)};
}

}  // namespace mdfs::geometry
