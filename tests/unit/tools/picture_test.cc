// Pictures of layouts and zones: everything is drawn, once, whatever the size.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "geometry/window_spec.h"
#include "mdfs/layout_picture.h"
#include "mdfs/map_picture.h"

namespace mdfs::tools {
namespace {

geometry::Geometry image_of(unsigned rank, const geometry::Coord& grid) {
  geometry::Geometry geometry;
  geometry.rank = rank;
  geometry.axes = std::string("zyx").substr(3 - rank);
  for (unsigned axis = 0; axis < rank; ++axis) {
    geometry.extent[axis] = 8;
    geometry.shape[axis] = grid[axis] * 8 - 3;
  }
  return geometry;
}

// Sums of an attribute by another, of all elements that have both.
std::map<int, long> sums(const std::string& svg, const std::string& by, const std::string& of) {
  std::map<int, long> found;
  const std::regex pattern(by + "=\"(\\d+)\" " + of + "=\"(\\d+)\"");
  for (std::sregex_iterator i(svg.begin(), svg.end(), pattern); i != std::sregex_iterator(); ++i)
    found[std::stoi((*i)[1])] += std::stol((*i)[2]);
  return found;
}

TEST(LayoutPictureTest, EveryExtentOfAPlaneIsDrawnInTheColourOfItsDiskAndMarkedOnItsStrip) {
  for (const geometry::Coord grid : {geometry::Coord{5, 7}, geometry::Coord{200, 3}, geometry::Coord{301, 411}}) {
    LayoutPicture picture(image_of(2, grid), std::vector<LayoutPicture::Disk>(4, {"", 1u << 20}), 4096,
                          "a <title> & \"b\"");
    std::map<int, long> expected;
    std::uint64_t block = 100;
    for (std::uint64_t y = 0; y < grid[0]; ++y)
      for (std::uint64_t x = 0; x < grid[1]; ++x) {
        const unsigned disk = static_cast<unsigned>((x + y) % 3);  // disk 3 has none
        picture.add({y, x}, disk, block += 3, 8192);
        ++expected[static_cast<int>(disk)];
      }
    const std::string svg = picture.svg();
    EXPECT_EQ(sums(svg, "data-disk", "data-extents"), expected);
    EXPECT_EQ(sums(svg, "data-strip", "data-extents"), expected);
    EXPECT_NE(svg.find("a &lt;title&gt; &amp; &quot;b&quot;"), std::string::npos);
    EXPECT_LT(svg.size(), 3u << 20) << "bounded, however many extents";
  }
}

TEST(LayoutPictureTest, OfThreeAxesSomePlanesAreDrawnAndAllExtentsAreOnTheStrips) {
  const geometry::Coord grid{9, 4, 5};
  LayoutPicture picture(image_of(3, grid), std::vector<LayoutPicture::Disk>(2, {"", 5000}), 4096, "volume");
  for (std::uint64_t z = 0; z < grid[0]; ++z)
    for (std::uint64_t y = 0; y < grid[1]; ++y)
      for (std::uint64_t x = 0; x < grid[2]; ++x) picture.add({z, y, x}, (x + y + z) % 2, 10 * z, 4096);
  const std::string svg = picture.svg();
  long drawn = 0;
  for (const auto& [disk, count] : sums(svg, "data-disk", "data-extents")) drawn += count;
  EXPECT_EQ(drawn, 4 * 4 * 5);
  long marked = 0;
  for (const auto& [disk, count] : sums(svg, "data-strip", "data-extents")) marked += count;
  EXPECT_EQ(marked, 9 * 4 * 5);
  for (const char* plane : {"z=0 of 0..8", "z=2 of", "z=5 of", "z=8 of"})
    EXPECT_NE(svg.find(plane), std::string::npos) << plane;
}

TEST(LayoutPictureTest, WhatAWindowNeedsHasFullColourAndAllElseIsPale) {
  const geometry::Geometry image = image_of(3, {9, 6, 7});
  const auto window =
      geometry::parse_window(image, "z20+8,y10+12,x8+16");  // planes 2 and 3, rows 1 and 2, columns 1 and 2
  ASSERT_TRUE(window.ok());
  LayoutPicture picture(image, std::vector<LayoutPicture::Disk>(3, {"", 5000}), 4096, "volume", *window);
  for (std::uint64_t z = 0; z < 9; ++z)
    for (std::uint64_t y = 0; y < 6; ++y)
      for (std::uint64_t x = 0; x < 7; ++x)
        picture.add({z, y, x}, static_cast<unsigned>((x + y + z) % 3), 10 * z, 4096);
  const std::string svg = picture.svg();
  const std::regex full("data-extents=\"\\d+\"/>"), pale("data-extents=\"\\d+\" opacity=\"0.25\"/>");
  const auto count = [&](const std::regex& pattern) {
    return std::distance(std::sregex_iterator(svg.begin(), svg.end(), pattern), std::sregex_iterator());
  };
  EXPECT_EQ(count(pale), 2 * 6 * 7 - 8);
  EXPECT_NE(svg.find("z=2 of 0..8"), std::string::npos);
  EXPECT_NE(svg.find("z=3 of 0..8"), std::string::npos);
  EXPECT_EQ(svg.find("z=4 of 0..8"), std::string::npos);
  EXPECT_NE(svg.find("window z20+8,y10+12,x8+16, 8 extents, 3 on the busiest disk"), std::string::npos)
      << svg.substr(0, 2000);
  EXPECT_GE(count(full), 8);
}

TEST(LayoutPictureTest, DisksHaveColoursOfTheirOwn) {
  std::set<std::string> colours;
  for (unsigned disk = 0; disk < 64; ++disk) colours.insert(disk_colour(disk));
  EXPECT_EQ(colours.size(), 64u);
}

TEST(LayoutPictureTest, NonsenseIsNotDrawn) {
  LayoutPicture picture(image_of(1, {10}), {{"", 100}}, 4096, "odd");
  picture.add({3}, 7, 0, 1);            // no such disk
  picture.add({99}, 0, 0, 1);           // outside of the grid
  picture.add({4}, 0, 1u << 30, 4096);  // beyond the disk's end
  EXPECT_EQ(picture.extents(), 1u);
  EXPECT_NE(picture.svg().find("</svg>"), std::string::npos);
}

TEST(MapPictureTest, EveryZoneAndEveryBlockInUseIsInTheDrawing) {
  for (const std::size_t zones : {std::size_t{1}, std::size_t{40}, std::size_t{1000}}) {
    DiskOccupation disk;
    disk.there = true;
    long used = 0;
    for (std::size_t i = 0; i < zones; ++i) {
      disk.zones.push_back({i == 0 ? 0u : 1000u, i == 0 ? 0u : i % 1000});
      used += i == 0 ? 0 : static_cast<long>(i % 1000);
    }
    const std::string svg = map_svg({disk, DiskOccupation{}}, {0, 2}, {"/dev/a", "/dev/b"}, "v", 4096);
    long drawn_zones = 0;
    long drawn_used = 0;
    for (const auto& [count, sum] : sums(svg, "data-zones", "data-used")) drawn_used += sum;
    const std::regex pattern("data-zones=\"(\\d+)\"");
    for (std::sregex_iterator i(svg.begin(), svg.end(), pattern); i != std::sregex_iterator(); ++i)
      drawn_zones += std::stol((*i)[1]);
    EXPECT_EQ(drawn_zones, static_cast<long>(zones));
    EXPECT_EQ(drawn_used, used);
    EXPECT_NE(svg.find("disk 2: not there"), std::string::npos);
  }
}

TEST(OccupationTest, ImbalanceIsTheLargestAgainstTheMean) {
  EXPECT_EQ(imbalance({}), 1);
  EXPECT_EQ(imbalance({0, 0}), 1);
  EXPECT_EQ(imbalance({0.5, 0.5}), 1);
  EXPECT_DOUBLE_EQ(imbalance({0.2, 0.6}), 1.5);
}

TEST(OccupationTest, WarnsOfDisksThatAreNearlyFullAndSaysWhereExtentsGo) {
  std::vector<DiskOccupation> disks(3);
  disks[0] = {true, 1000, 500, 0, 0, {}};
  disks[1] = {true, 1000, 950, 0, 0, {}};
  disks[2] = {true, 1000, 1000, 7, 0, {}};
  const auto lines = fullness_warnings(disks);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "disk 1 is 95 % full; when it is full its new extents go to other disks");
  EXPECT_EQ(lines[1], "disk 2 is 100 % full; its new extents go to other disks (7 so far)");
}

}  // namespace
}  // namespace mdfs::tools
