// Placements against the published figures, and the promises that growth relies on.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/placement.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "generators.h"
#include "geometry/placement_score.h"
#include "geometry/placement_tables.h"

namespace mdfs::geometry {
namespace {

constexpr double kTolerance = 0.002;

std::vector<std::uint16_t> disks(unsigned count) {
  std::vector<std::uint16_t> list(count);
  std::iota(list.begin(), list.end(), std::uint16_t{0});
  return list;
}

struct Published2d {
  unsigned disks;
  unsigned offset;
  double typical;
  unsigned excess;
  double best;  // of the best permutation found, where it beats the offset
};

// doc/DESIGN.md, placement: figures by exhaustive enumeration.
constexpr Published2d kPublished2d[] = {
    {2, 1, 1.000, 0, 1.000},  {3, 1, 1.000, 0, 1.000},  {4, 1, 1.011, 1, 1.005},   {5, 2, 1.000, 0, 1.000},
    {6, 1, 1.045, 1, 1.017},  {7, 2, 1.010, 1, 1.010},  {8, 3, 1.023, 1, 1.023},   {9, 2, 1.041, 1, 1.034},
    {10, 3, 1.048, 1, 1.042}, {12, 5, 1.058, 1, 1.058}, {16, 7, 1.091, 1, 1.090},  {20, 9, 1.148, 1, 1.124},
    {24, 7, 1.139, 2, 1.139}, {32, 7, 1.173, 2, 1.173}, {48, 11, 1.197, 2, 1.197}, {64, 15, 1.245, 2, 1.245}};

TEST(PlacementScoreTest, PlainOffsetsScoreAsPublishedInTwoDimensions) {
  for (const Published2d& row : kPublished2d) {
    const Placement placement = offset_placement(disks(row.disks), row.offset, 0);
    EXPECT_NEAR(typical_2d(placement.row), row.typical, kTolerance) << row.disks;
    EXPECT_EQ(worst_excess_2d(placement.row), row.excess) << row.disks;
  }
}

TEST(PlacementTableTest, TablesAreAsGoodAsPublishedInTwoDimensions) {
  for (const Published2d& row : kPublished2d) {
    const Placement placement = default_placement(2, disks(row.disks));
    EXPECT_LE(typical_2d(placement.row), row.best + kTolerance) << row.disks;
    EXPECT_LE(worst_excess_2d(placement.row), row.excess) << row.disks;
  }
}

struct Published3d {
  unsigned disks;
  double typical;
  double slices;
};
constexpr Published3d kPublished3d[] = {{4, 1.006, 1.018},  {5, 1.004, 1.019},  {6, 1.021, 1.062},  {7, 1.004, 1.027},
                                        {8, 1.034, 1.081},  {10, 1.053, 1.141}, {12, 1.091, 1.200}, {16, 1.111, 1.189},
                                        {24, 1.190, 1.186}, {32, 1.234, 1.167}};

TEST(PlacementScoreTest, PlainOffsetsScoreAsPublishedInThreeDimensions) {
  const std::vector<std::tuple<unsigned, unsigned, unsigned, double, double>> rows = {
      {5, 1, 2, 1.004, 1.019},  {7, 2, 3, 1.004, 1.027},  {8, 1, 3, 1.050, 1.116},  {10, 2, 3, 1.053, 1.141},
      {16, 6, 7, 1.111, 1.189}, {24, 7, 9, 1.190, 1.186}, {32, 7, 12, 1.234, 1.167}};
  for (const auto& [count, s, t, typical, slices] : rows) {
    const Placement placement = offset_placement(disks(count), s, t);
    EXPECT_NEAR(typical_3d(placement.row, placement.plane), typical, kTolerance) << count;
    EXPECT_NEAR(slices_3d(placement.row, placement.plane), slices, kTolerance) << count;
  }
}

TEST(PlacementTableTest, TablesAreAsGoodAsPublishedInThreeDimensions) {
  for (const Published3d& row : kPublished3d) {
    const Placement placement = default_placement(3, disks(row.disks));
    EXPECT_LE(typical_3d(placement.row, placement.plane) + slices_3d(placement.row, placement.plane),
              row.typical + row.slices + kTolerance)
        << row.disks;
  }
}

TEST(PlacementTableTest, EveryRowTableIsAPermutationThatStartsAtZero) {
  for (unsigned slots = 1; slots <= kLargestTable; ++slots) {
    const auto row = table_2d(slots);
    ASSERT_EQ(row.size(), slots);
    EXPECT_EQ(row[0], 0u);
    EXPECT_EQ(std::set<std::uint16_t>(row.begin(), row.end()).size(), slots);
    EXPECT_LT(*std::max_element(row.begin(), row.end()), slots);
  }
}

TEST(PlacementTableTest, EveryVolumeTableIsInRangeAndReachesEverySlot) {
  for (unsigned slots = 1; slots <= 2 * kLargestTable3d; ++slots) {
    const PlacementTables tables = tables_3d(slots);
    ASSERT_EQ(tables.row.size(), slots);
    ASSERT_EQ(tables.plane.size(), slots);
    std::set<unsigned> reached;  // by a plane of constant x
    for (const unsigned r : tables.row)
      for (const unsigned q : tables.plane) reached.insert((r + q) % slots);
    EXPECT_EQ(reached.size(), slots);
  }
}

TEST(PlacementTableTest, TheRuleBeyondTheTablesSpreadsTypicalWindows) {
  for (const unsigned slots : {65u, 96u, 100u, 128u, 200u}) {
    const auto row = table_2d(slots);
    EXPECT_EQ(std::set<std::uint16_t>(row.begin(), row.end()).size(), slots);
    EXPECT_LT(typical_2d(row), 1.4) << slots;
  }
  for (const unsigned slots : {33u, 40u, 48u, 64u, 96u, 128u}) {
    const PlacementTables tables = tables_3d(slots);
    EXPECT_LT(typical_3d(tables.row, tables.plane), slots <= kLargestTable ? 1.38 : 1.7) << slots;
  }
}

TEST(PlacementTest, FourByTwoExtentsOnEightDisksPutNoTwoOnOne) {
  const Placement placement = default_placement(2, disks(8), Coord{2, 4, 0});
  std::set<unsigned> used;
  for (std::uint64_t y = 0; y < 2; ++y)
    for (std::uint64_t x = 0; x < 4; ++x) used.insert(disk_of(placement, 2, 5, {y, x, 0}));
  EXPECT_EQ(used.size(), 8u);
}

TEST(PlacementTest, NoSmallGridPutsTwoExtentsOnADiskWhileAnotherHasNone) {
  for (const unsigned count : {2u, 3u, 4u, 6u, 8u, 12u, 16u, 24u})
    for (std::uint64_t rows = 1; rows <= count; ++rows)
      for (std::uint64_t columns = 1; rows * columns <= count; ++columns) {
        const Placement placement = default_placement(2, disks(count), Coord{rows, columns, 0});
        ASSERT_TRUE(check(placement, count).ok());
        std::map<unsigned, unsigned> used;
        testing::each_index(2, {}, {rows, columns, 0},
                            [&](const Coord& extent) { ++used[disk_of(placement, 2, 0, extent)]; });
        EXPECT_EQ(used.size(), rows * columns) << rows << "x" << columns << " on " << count;
      }
}

TEST(PlacementTest, ASmallGridIsNeverServedWorseThanByTheGeneralTable) {
  for (const unsigned rank : {2u, 3u})
    for (const unsigned count : {4u, 8u, 12u, 16u})
      for (std::uint64_t rows = 2; rows <= 6; ++rows)
        for (std::uint64_t columns = 2; columns <= 6; ++columns) {
          const std::uint64_t planes = rank == 3 ? 3 : 1;
          const Coord grid = rank == 3 ? Coord{planes, rows, columns} : Coord{rows, columns, 0};
          if (planes * rows * columns >= 2 * count) continue;
          const Placement small = default_placement(rank, disks(count), grid);
          const Placement general = default_placement(rank, disks(count));
          const GridScorer scorer({planes, rows, columns});
          EXPECT_LE(scorer.score(small.row, small.plane).whole, scorer.score(general.row, general.plane).whole);
        }
}

TEST(PlacementTest, DisksNamedTwiceCarryTwiceTheLoad) {
  const Placement placement = default_placement(2, {0, 1, 0, 2});
  EXPECT_EQ(placement.disks, 3u);
  EXPECT_TRUE(check(placement, 3).ok());
  std::map<unsigned, unsigned> used;
  testing::each_index(2, {}, {8, 8, 0}, [&](const Coord& extent) { ++used[disk_of(placement, 2, 0, extent)]; });
  EXPECT_EQ(used[0], 32u);
  EXPECT_EQ(used[1], 16u);
  EXPECT_EQ(used[2], 16u);
}

TEST(WeightedDiskListTest, DisksComeAsOftenAsTheyWeighAndApart) {
  EXPECT_EQ(*weighted_disk_list(std::vector<unsigned>{1, 1, 1}), (std::vector<std::uint16_t>{0, 1, 2}));
  EXPECT_EQ(*weighted_disk_list(std::vector<unsigned>{4, 4}), (std::vector<std::uint16_t>{0, 1}));
  EXPECT_EQ(*weighted_disk_list(std::vector<unsigned>{2, 2, 1, 1}), (std::vector<std::uint16_t>{0, 1, 2, 3, 0, 1}));
  EXPECT_EQ(*weighted_disk_list(std::vector<unsigned>{3, 0, 1}), (std::vector<std::uint16_t>{0, 0, 2, 0}));
  EXPECT_FALSE(weighted_disk_list(std::vector<unsigned>{0, 0}).ok());
  EXPECT_FALSE(weighted_disk_list(std::vector<unsigned>{4000, 97}).ok());
}

double weighted_score(const std::vector<unsigned>& weights) {
  const Placement placement = default_placement(2, *weighted_disk_list(weights));
  return weighted_typical_2d(placement.row, placement.slot);
}

TEST(WeightedDiskListTest, UnequalDisksFinishTogether) {
  EXPECT_LE(weighted_score({2, 2, 1, 1}), 1.036 + kTolerance);
  EXPECT_LE(weighted_score({2, 2, 2, 2, 1, 1, 1, 1}), 1.066 + kTolerance);
  EXPECT_LE(weighted_score({4, 4, 4, 4, 3, 3, 2, 2}), 1.093 + kTolerance);
}

TEST(WeightedDiskListTest, ASmallImageUsesEachDiskByItsWeight) {
  const Placement placement = default_placement(2, *weighted_disk_list(std::vector<unsigned>{2, 2, 1, 1}), Coord{2, 3});
  std::map<unsigned, unsigned> extents;
  for (std::uint64_t y = 0; y < 2; ++y)
    for (std::uint64_t x = 0; x < 3; ++x) ++extents[disk_of(placement, 2, 4, Coord{y, x})];
  EXPECT_EQ(extents, (std::map<unsigned, unsigned>{{0, 2}, {1, 2}, {2, 1}, {3, 1}}));
}

TEST(WeightedDiskListTest, EqualWeightsScoreAsEqualDisks) {
  for (const unsigned count : {2u, 5u, 8u, 12u}) {
    const Placement placement = default_placement(2, disks(count));
    EXPECT_NEAR(weighted_typical_2d(placement.row, placement.slot), typical_2d(placement.row), 1e-9) << count;
  }
}

RC_GTEST_PROP(PlacementTest, EveryExtentHasADiskOfTheListWhateverTheNumbers, ()) {
  const unsigned rank = testing::any_rank();
  const auto count = *rc::gen::inRange(1u, 100u);
  const Placement placement = default_placement(rank, disks(count));
  RC_ASSERT(check(placement, count).ok());
  const auto big = rc::gen::arbitrary<std::uint64_t>();
  RC_ASSERT(disk_of(placement, rank, *big, {*big, *big, *big}) < count);
}

RC_GTEST_PROP(PlacementTest, TheMapIsTheFormula, ()) {
  const auto count = *rc::gen::inRange(1u, 40u);
  const auto s = *rc::gen::inRange(0u, count), t = *rc::gen::inRange(0u, count);
  const auto base = *rc::gen::inRange<std::uint64_t>(0, 1000);
  const Coord extent = testing::any_lengths(3, 0, 1000);
  RC_ASSERT(disk_of(offset_placement(disks(count), s, t), 3, base, extent) ==
            (base + extent[2] + s * extent[1] + t * extent[0]) % count);
}

TEST(PlacementTest, SlowerAxesShiftThePatternOfTheFasterOnes) {
  for (const unsigned count : {1u, 5u, 8u, 40u, 100u}) {
    const Placement placement = default_placement(5, disks(count));
    const Placement volumes = default_placement(3, disks(count));
    EXPECT_EQ(placement.row, volumes.row);
    EXPECT_EQ(placement.plane, volumes.plane);
    const std::uint64_t w = 3, v = 7, z = 2, y = 9, x = 4;
    EXPECT_EQ(disk_of(placement, 5, 1, {w, v, z, y, x}),
              disk_of(volumes, 3, 1 + v * placement.fourth + w * placement.fifth, {z, y, x}));
    EXPECT_EQ(disk_of(placement, 4, 1, {v, z, y, x}), disk_of(placement, 5, 1, {0, v, z, y, x}));
    EXPECT_EQ(disk_of(placement, 3, 1, {z, y, x}), disk_of(volumes, 3, 1, {z, y, x}));
  }
}

TEST(PlacementTest, OnePlaceOverAllStepsOfASlowAxisIsOnAllDisksInTurn) {
  for (unsigned count = 2; count <= 80; ++count) {
    const Placement placement = default_placement(5, disks(count));
    std::set<unsigned> along_fourth, along_fifth;
    for (std::uint64_t step = 10; step < 10 + count; ++step) {
      along_fourth.insert(disk_of(placement, 5, 3, {1, step, 5, 6, 7}));
      along_fifth.insert(disk_of(placement, 5, 3, {step, 1, 5, 6, 7}));
    }
    EXPECT_EQ(along_fourth.size(), count);
    EXPECT_EQ(along_fifth.size(), count);
  }
}

// Mean ratio of windows along the fourth axis, along the fifth, and along both (tools/placement_search.cc).
TEST(PlacementTest, WindowsAlongSlowAxesSpreadAsTheSearchFound) {
  struct Row {
    unsigned disks;
    double fourth, fifth, both;
  };
  for (const Row& row : {Row{2, 1, 1, 1}, Row{3, 1, 1, 1}, Row{4, 1.0137, 1.0137, 1.0363}, Row{5, 1.0095, 1.0211, 1},
                         Row{6, 1.0420, 1.0420, 1.1243}, Row{7, 1.0318, 1.0318, 1.0272}}) {
    const Placement placement = default_placement(5, disks(row.disks));
    EXPECT_NEAR(typical_slow(placement.row, placement.plane, placement.fourth), row.fourth, 1e-4) << row.disks;
    EXPECT_NEAR(typical_slow(placement.row, placement.plane, placement.fifth), row.fifth, 1e-4) << row.disks;
    EXPECT_NEAR(typical_slow_plane(row.disks, placement.fourth, placement.fifth), row.both, 1e-4) << row.disks;
  }
}

TEST(PlacementTest, SmallGridsOfManyAxesPutNoTwoExtentsOnOneDisk) {
  for (const unsigned count : {4u, 6u, 8u, 12u, 16u})
    for (std::uint64_t w = 1; w <= 3; ++w)
      for (std::uint64_t v = 1; v <= 4; ++v)
        for (std::uint64_t columns = 1; w * v * columns * 2 <= count; ++columns) {
          const Coord grid{w, v, 1, 2, columns};
          const Placement placement = default_placement(5, disks(count), grid);
          ASSERT_TRUE(check(placement, count).ok());
          std::set<unsigned> used;
          testing::each_index(5, {}, grid, [&](const Coord& extent) { used.insert(disk_of(placement, 5, 0, extent)); });
          EXPECT_EQ(used.size(), w * v * 2 * columns) << count << ": " << w << " " << v << " " << columns;
        }
}

TEST(PlacementTest, ARowOfExtentsUsesAllDisksInTurn) {
  const Placement placement = default_placement(1, disks(7));
  for (std::uint64_t x = 0; x < 50; ++x) EXPECT_EQ(disk_of(placement, 1, 3, {x, 0, 0}), (x + 3) % 7);
}

TEST(PlacementTest, TablesFromADamagedDiskAreRefused) {
  const Placement good = default_placement(2, disks(4));
  ASSERT_TRUE(check(good, 4).ok());
  const auto refused = [](Placement bad) { return !check(bad, 4).ok(); };
  Placement bad = good;
  bad.row[2] = 4;
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.plane.pop_back();
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.slot[0] = 4;
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.disks = 3;
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.fourth = 4;
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.fifth = 4;
  EXPECT_TRUE(refused(bad));
  EXPECT_TRUE(refused(Placement{}));
}

}  // namespace
}  // namespace mdfs::geometry
