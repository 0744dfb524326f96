// Growth against a search of its own: every extent of a whole period is counted, whatever the formulas say.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/placement_growth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "geometry/placement_score.h"

namespace mdfs::geometry {
namespace {

using Disks = std::vector<std::uint16_t>;

Disks disks(unsigned count) {
  Disks list(count);
  std::iota(list.begin(), list.end(), std::uint16_t{0});
  return list;
}

std::uint64_t from(unsigned first, unsigned count) {
  std::uint64_t bits = 0;
  for (unsigned disk = first; disk < first + count; ++disk) bits |= std::uint64_t{1} << disk;
  return bits;
}

constexpr unsigned kSide = 16;

// The disks of the extents of one period of a plane, which goes on for ever in both directions.
struct Plane {
  unsigned period;
  unsigned disks;
  std::vector<std::uint8_t> disk;

  Plane(unsigned side, unsigned count, const std::function<unsigned(unsigned, unsigned)>& disk_of)
      : period(side), disks(count), disk(std::size_t{side} * side) {
    for (unsigned y = 0; y < side; ++y)
      for (unsigned x = 0; x < side; ++x) disk[y * side + x] = static_cast<std::uint8_t>(disk_of(y, x));
  }
  unsigned at(unsigned y, unsigned x) const { return disk[y % period * period + x % period]; }

  // Mean over every position of all windows of 2..16 by 2..16 extents of aspect at most 4:1.
  double typical() const {
    const unsigned width = period + kSide + 1;
    std::vector<std::vector<std::uint16_t>> sums(disks, std::vector<std::uint16_t>(std::size_t{width} * width));
    for (unsigned d = 0; d < disks; ++d)
      for (unsigned y = 0; y + 1 < width; ++y)
        for (unsigned x = 0, row = 0; x + 1 < width; ++x) {
          row += at(y, x) == d ? 1 : 0;
          sums[d][(y + 1) * width + x + 1] = static_cast<std::uint16_t>(sums[d][y * width + x + 1] + row);
        }
    double sum = 0;
    std::size_t shapes = 0;
    for (unsigned h = 2; h <= kSide; ++h)
      for (unsigned w = 2; w <= kSide; ++w) {
        if (std::max(h, w) > 4 * std::min(h, w)) continue;
        std::uint64_t busiest_of_all = 0;
        for (unsigned y = 0; y < period; ++y)
          for (unsigned x = 0; x < period; ++x) {
            unsigned busiest = 0;
            for (const std::vector<std::uint16_t>& s : sums)
              busiest = std::max<unsigned>(
                  busiest, static_cast<std::uint16_t>(s[(y + h) * width + x + w] - s[y * width + x + w] -
                                                      s[(y + h) * width + x] + s[y * width + x]));
            busiest_of_all += busiest;
          }
        sum += static_cast<double>(busiest_of_all) / std::ceil(static_cast<double>(h * w) / disks);
        ++shapes;
      }
    return sum / static_cast<double>(shapes) / period / period;
  }
};

struct Growth {
  unsigned before, added;
};

Plane grown_plane(const Placement& before, const Placement& after, std::uint64_t taking, const Growth& growth) {
  const unsigned count = growth.before + growth.added;
  return {std::lcm(growth.before, count), count, [&](unsigned y, unsigned x) {
            return disk_after_growth(before, after, taking, 2, 3, {y, x, 0});
          }};
}

// The best lattice that gives the new disks their share of what `before` has stored: each new disk takes the extents
// where (x + row * y) mod count is one number of its own.
double best_lattice(const Placement& before, const Growth& growth) {
  const unsigned count = growth.before + growth.added;
  double best = 1e9;
  for (unsigned row = 0; row < count; ++row)
    for (unsigned step = 1; step < (growth.added == 1 ? 2 : count); ++step) {
      std::vector<unsigned> taker(count, UINT32_MAX);
      bool apart = true;
      for (unsigned i = 0; i < growth.added; ++i) {
        apart = apart && taker[i * step % count] == UINT32_MAX;
        taker[i * step % count] = growth.before + i;
      }
      if (!apart) continue;
      const Plane plane(std::lcm(growth.before, count), count, [&](unsigned y, unsigned x) {
        const unsigned disk = taker[(x + row * y) % count];
        return disk != UINT32_MAX ? disk : disk_of(before, 2, 3, {y, x, 0});
      });
      best = std::min(best, plane.typical());
    }
  return best;
}

constexpr Growth kGrowths[] = {{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}, {8, 1}, {9, 1},
                               {2, 2}, {3, 2}, {4, 2}, {5, 2}, {6, 2}, {7, 2}, {8, 2}, {2, 3}, {3, 3},
                               {6, 3}, {3, 4}, {4, 4}, {6, 4}, {8, 4}, {4, 8}, {8, 8}};

TEST(PlacementGrowthTest, WindowsTakeAtMostFourPercentMoreThanWithTheBestLatticeThatMovesAsLittle) {
  for (const Growth& growth : kGrowths) {
    const Placement before = default_placement(2, disks(growth.before));
    const std::uint64_t taking = from(growth.before, growth.added);
    const Placement after = grown_placement(before, 2, disks(growth.before + growth.added), taking);
    const double score = grown_plane(before, after, taking, growth).typical();
    EXPECT_LE(score, 1.04 * best_lattice(before, growth)) << growth.before << " + " << growth.added;
    EXPECT_NEAR(growth_score(before, after, taking, 2), score, 0.02) << growth.before << " + " << growth.added;
  }
}

// Kept and moved extents change places, one pair after the other, wherever that is better.
TEST(PlacementGrowthTest, NoSwapsOfKeptAndMovedExtentsMakeABetterMapByMoreThanFourPercent) {
  for (const Growth& growth : {Growth{3, 1}, Growth{4, 2}, Growth{2, 2}}) {
    const Placement before = default_placement(2, disks(growth.before));
    const std::uint64_t taking = from(growth.before, growth.added);
    const Placement after = grown_placement(before, 2, disks(growth.before + growth.added), taking);
    Plane plane = grown_plane(before, after, taking, growth);
    const double made = plane.typical();
    double best = made;
    std::mt19937 random(1);
    for (unsigned attempt = 0; attempt < 10000; ++attempt) {
      const std::size_t a = random() % plane.disk.size();
      const std::size_t b = random() % plane.disk.size();
      if (plane.disk[a] < growth.before || plane.disk[b] >= growth.before) continue;
      const Plane was = plane;
      plane.disk[b] = plane.disk[a];
      plane.disk[a] = static_cast<std::uint8_t>(disk_of(before, 2, 3, {a / plane.period, a % plane.period, 0}));
      if (const double score = plane.typical(); score <= best)
        best = score;
      else
        plane = was;
    }
    EXPECT_LE(made, 1.04 * best) << growth.before << " + " << growth.added;
  }
}

TEST(PlacementGrowthTest, TheGeneralTablesAloneWouldTakeAFifthMore) {
  const Growth growth{8, 4};
  const Placement before = default_placement(2, disks(8));
  const std::uint64_t taking = from(8, 4);
  EXPECT_GT(grown_plane(before, default_placement(2, disks(12)), taking, growth).typical(),
            1.2 * grown_plane(before, grown_placement(before, 2, disks(12), taking), taking, growth).typical());
}

TEST(PlacementGrowthTest, FreshImagesTakeAtMostThreePercentMore) {
  for (const Growth& growth : kGrowths) {
    const unsigned count = growth.before + growth.added;
    const Placement after =
        grown_placement(default_placement(2, disks(growth.before)), 2, disks(count), from(growth.before, growth.added));
    EXPECT_TRUE(check(after, count).ok());
    EXPECT_LE(typical_2d(after.row), kGrowthAllowance * typical_2d(default_placement(2, disks(count)).row) + 1e-9)
        << growth.before << " + " << growth.added;
  }
}

// Of each K by K (by K) extents.
TEST(PlacementGrowthTest, EveryNewDiskTakesItsShareAndNoMore) {
  for (const unsigned rank : {1u, 2u, 3u})
    for (const Growth& growth : {Growth{1, 1}, Growth{4, 1}, Growth{5, 2}, Growth{8, 4}}) {
      const unsigned count = growth.before + growth.added;
      const Placement before = default_placement(rank, disks(growth.before));
      const std::uint64_t taking = from(growth.before, growth.added);
      const Placement after = grown_placement(before, rank, disks(count), taking);
      std::vector<unsigned> moved(count);
      unsigned extents = 0;
      for (std::uint64_t z = 0; z < (rank > 2 ? count : 1); ++z)
        for (std::uint64_t y = 0; y < (rank > 1 ? count : 1); ++y)
          for (std::uint64_t x = 0; x < count; ++x, ++extents) {
            Coord extent{};
            extent[rank - 1] = x;
            if (rank > 1) extent[rank - 2] = y;
            if (rank > 2) extent[0] = z;
            const unsigned disk = disk_after_growth(before, after, taking, rank, 0, extent);
            if (disk != disk_of(before, rank, 0, extent)) ++moved[disk];
          }
      for (unsigned disk = 0; disk < count; ++disk)
        EXPECT_EQ(moved[disk], disk < growth.before ? 0 : extents / count) << "rank " << rank << " disk " << disk;
    }
}

TEST(PlacementGrowthTest, BoxesAndSlicesTakeAtMostFourPercentMoreThanWithAnyPairOfOffsets) {
  for (const Growth& growth : {Growth{2, 1}, Growth{3, 1}, Growth{4, 1}, Growth{4, 2}, Growth{7, 1}}) {
    const unsigned count = growth.before + growth.added;
    const Placement before = default_placement(3, disks(growth.before));
    const std::uint64_t taking = from(growth.before, growth.added);
    const double made = growth_score(before, grown_placement(before, 3, disks(count), taking), taking, 3);
    for (unsigned row = 0; row < count; ++row)
      for (unsigned plane = 0; plane < count; ++plane)
        EXPECT_LE(made, 1.04 * growth_score(before, offset_placement(disks(count), row, plane), taking, 3))
            << growth.before << " + " << growth.added << ": " << row << ", " << plane;
  }
}

TEST(PlacementGrowthTest, ADiskOfTwiceTheWeightTakesTwiceTheShare) {
  const Placement before = default_placement(2, disks(4));
  const auto list = weighted_disk_list(std::vector<unsigned>{1, 1, 1, 1, 2});
  ASSERT_TRUE(list.ok());
  const Placement after = grown_placement(before, 2, *list, from(4, 1));
  unsigned moved = 0;
  for (std::uint64_t y = 0; y < 12; ++y)
    for (std::uint64_t x = 0; x < 12; ++x)
      moved += disk_after_growth(before, after, from(4, 1), 2, 0, {y, x, 0}) == 4 ? 1 : 0;
  EXPECT_EQ(moved, 144u / 3);
  EXPECT_LE(growth_score(before, after, from(4, 1), 2),
            growth_score(before, default_placement(2, *list), from(4, 1), 2));
}

TEST(PlacementGrowthTest, ManyDisksAreSpreadAmongMany) {
  for (const unsigned rank : {1u, 2u, 3u}) {
    const Placement before = default_placement(rank, disks(48));
    const Placement after = grown_placement(before, rank, disks(64), from(48, 16));
    EXPECT_TRUE(check(after, 64).ok());
    EXPECT_LE(growth_score(before, after, from(48, 16), rank),
              growth_score(before, default_placement(rank, disks(64)), from(48, 16), rank));
  }
  const Disks many = *weighted_disk_list(std::vector<unsigned>{100, 60, 31, 65});
  EXPECT_TRUE(check(grown_placement(default_placement(2, disks(3)), 2, many, from(3, 1)), 4).ok());
}

}  // namespace
}  // namespace mdfs::geometry
