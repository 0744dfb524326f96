// Fragmentation, on layouts made by hand.
// SPDX-License-Identifier: Apache-2.0
#include "layout/fragmentation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "geometry/placement.h"

namespace mdfs::layout {
namespace {

using geometry::Coord;

constexpr std::uint64_t kExtentBytes = 64u << 10;
constexpr unsigned kDisks = 4;

struct Image {
  explicit Image(unsigned rank, Coord grid) : groups(rank, grid, kExtentBytes) {
    laid.rank = rank;
    laid.grid = grid;
    laid.disks = kDisks;
    laid.groups = &groups;
    std::vector<std::uint16_t> disks;
    for (std::uint16_t disk = 0; disk < kDisks; ++disk) disks.push_back(disk);
    laid.placement_disk = [rank, placement = geometry::default_placement(rank, disks)](const Coord& extent) {
      return geometry::disk_of(placement, rank, 0, extent);
    };
    for (std::uint64_t a = 0; a < grid[0]; ++a)
      for (std::uint64_t b = 0; b < (rank > 1 ? grid[1] : 1); ++b)
        for (std::uint64_t c = 0; c < (rank > 2 ? grid[2] : 1); ++c) {
          const Coord extent{a, b, c};
          places.push_back({extent, laid.placement_disk(extent), 0, kExtentBytes});
        }
    places = fresh_places(laid, places);
  }
  Groups groups;
  ImageLayout laid;
  std::vector<ExtentPlace> places;
};

// Blocks are handed out in another order.
void shuffle(Image& image) {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> order(image.places.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  for (std::size_t i = 0; i < order.size(); ++i) image.places[i].block = order[i] * (kExtentBytes / 4096) * 2;
}

struct Grid {
  unsigned rank;
  Coord grid;
};

class FragmentationTest : public ::testing::TestWithParam<Grid> {
 protected:
  Image image_{GetParam().rank, GetParam().grid};
};

TEST_P(FragmentationTest, AFreshCopyScoresOne) {
  const Fragmentation fragmentation = fragmentation_of(image_.laid, image_.places);
  EXPECT_GT(fragmentation.windows, 0u);
  EXPECT_EQ(fragmentation.extents, image_.places.size());
  EXPECT_DOUBLE_EQ(fragmentation.factor(), 1);
  EXPECT_DOUBLE_EQ(fragmentation.runs_per_disk(), fragmentation.fresh_runs_per_disk());
  EXPECT_DOUBLE_EQ(fragmentation.runs_on_busiest(), fragmentation.fresh_runs_on_busiest());
  EXPECT_DOUBLE_EQ(fragmentation.read_per_needed(), 1);
  EXPECT_EQ(fragmentation.misplaced, 0u);
}

TEST_P(FragmentationTest, ExtentsAllOverTheDisksAreOneRunEach) {
  shuffle(image_);
  const Fragmentation fragmentation = fragmentation_of(image_.laid, image_.places);
  EXPECT_GT(fragmentation.factor(), 1.3);
  EXPECT_DOUBLE_EQ(fragmentation.fresh_runs_per_disk() * fragmentation.factor(), fragmentation.runs_per_disk());
}

TEST_P(FragmentationTest, WhatIsWorseScoresMore) {
  double before = 1;
  std::mt19937_64 random(2);
  for (unsigned moved = 0; moved < 4; ++moved) {
    for (std::size_t i = 0; i < image_.places.size() / 4; ++i)
      image_.places[random() % image_.places.size()].block = 1'000'000 + (moved * 10'000 + i) * 100;
    const double factor = fragmentation_of(image_.laid, image_.places).factor();
    EXPECT_GT(factor, before);
    before = factor;
  }
}

INSTANTIATE_TEST_SUITE_P(Grids, FragmentationTest,
                         ::testing::Values(Grid{1, {300, 0, 0}}, Grid{2, {40, 37, 0}}, Grid{2, {3, 90, 0}},
                                           Grid{3, {9, 10, 11}}));

TEST(FragmentationOfFewExtentsTest, NothingIsStoredNothingIsCounted) {
  Image image(2, {8, 8, 0});
  const Fragmentation fragmentation = fragmentation_of(image.laid, {});
  EXPECT_EQ(fragmentation.windows, 0u);
  EXPECT_EQ(fragmentation.factor(), 0);
  EXPECT_EQ(fragmentation.runs_per_disk(), 0);
}

TEST(FragmentationOfFewExtentsTest, PiecesOfAnExtentAreRunsOfItsWindow) {
  Image image(2, {1, 1, 0});
  image.places[0].pieces = 3;
  const Fragmentation fragmentation = fragmentation_of(image.laid, image.places);
  EXPECT_EQ(fragmentation.runs_per_disk(), 3);
  EXPECT_EQ(fragmentation.factor(), 3);
  EXPECT_EQ(fragmentation.scattered, 1u);
}

TEST(FragmentationOfFewExtentsTest, ExtentsThatEndWithinABlockAreReadToItsEnd) {
  Image image(2, {4, 4, 0});
  for (ExtentPlace& place : image.places) place.stored_bytes = 2048;
  EXPECT_DOUBLE_EQ(fragmentation_of(image.laid, fresh_places(image.laid, image.places)).read_per_needed(), 2);
}

TEST(FragmentationOfFewExtentsTest, AnExtentOnAnotherDiskThanItsPlacementNamesIsMisplaced) {
  Image image(2, {6, 6, 0});
  image.places[7].disk = (image.places[7].disk + 1) % kDisks;
  EXPECT_EQ(fragmentation_of(image.laid, image.places).misplaced, 1u);
}

}  // namespace
}  // namespace mdfs::layout
