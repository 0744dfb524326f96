// Names of Deep Zoom, and the windows that its tiles are.
// SPDX-License-Identifier: Apache-2.0
#include "views/zoom_name.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "geometry/level.h"
#include "small_image.h"

namespace mdfs::views {
namespace {

using geometry::ElementType;
using geometry::Geometry;

ZoomPicture picture_of(const Geometry& image, std::optional<geometry::PlaneIndex> plane = {}) {
  auto picture = zoom_picture(image, plane);
  EXPECT_TRUE(picture.ok());
  return *picture;
}

// Walks the names of a path below plane/ or, with a dz_files/ in front, below the image.
Result<ZoomName> find_name(const Geometry& image, ZoomName name, std::string_view path) {
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    MDFS_TRY_ASSIGN(name, zoom_entry(image, name, path.substr(0, slash)));
    path.remove_prefix(std::min(path.size(), slash + 1));
  }
  return name;
}

TEST(ZoomName, TheDescriptionHasTheSizeAndTheFormat) {
  const std::string photo = zoom_description(picture_of(make("yx", {2500, 2701}, 3, ElementType::kU8)));
  EXPECT_NE(photo.find("Width=\"2701\" Height=\"2500\""), std::string::npos);
  EXPECT_NE(photo.find("Format=\"jpg\" Overlap=\"0\" TileSize=\"256\""), std::string::npos);
  const std::string deep = zoom_description(picture_of(make("yx", {5, 7}, 1, ElementType::kU16)));
  EXPECT_NE(deep.find("Format=\"png\""), std::string::npos);
}

TEST(ZoomName, LevelsGoFromOneSampleToTheImage) {
  const ZoomPicture photo = picture_of(make("yx", {2500, 2701}, 3, ElementType::kU8));
  EXPECT_EQ(photo.top, 12);
  EXPECT_EQ(zoom_grid(photo, 12).columns, 11);
  EXPECT_EQ(zoom_grid(photo, 12).rows, 10);
  EXPECT_EQ(zoom_grid(photo, 0).columns * zoom_grid(photo, 0).rows, 1);
  EXPECT_EQ(zoom_tile(photo, 12, 10, 9).window.length, (geometry::Coord{196, 141, 0}));
  EXPECT_EQ(zoom_tile(photo, 0, 0, 0).window.length, (geometry::Coord{1, 1, 0}));
  EXPECT_EQ(zoom_tile(photo, 0, 0, 0).level, 12);
  EXPECT_EQ(picture_of(make("yx", {1, 1}, 1, ElementType::kU8)).top, 0);
}

TEST(ZoomName, LevelsThatCannotBeComputedDoNotExist) {
  const Geometry image = make("yx", {100000, 100000}, 1, ElementType::kU8);
  ShownImage shown(image);
  const ZoomPicture computed = *zoom_picture(shown, {});
  EXPECT_EQ(computed.top, 17);
  EXPECT_EQ(computed.coarsest, 6);  // a tile is made of 16384 x 16384 samples
  const ZoomName tiles{.kind = ZoomKind::kTiles, .plane = {}, .level = 0};
  EXPECT_TRUE(zoom_entry(shown, tiles, "11").ok());
  EXPECT_FALSE(zoom_entry(shown, tiles, "10").ok());
  EXPECT_TRUE(parse_tile_name(computed, 11, "6_6.jpg").ok());
  EXPECT_FALSE(parse_tile_name(computed, 10, "0_0.jpg").ok());

  shown.stored_levels = 2;
  EXPECT_EQ(zoom_picture(shown, {})->coarsest, 8);
  shown.stored_levels = 7;  // a level of 782 x 782 samples; all others are made of it
  EXPECT_EQ(zoom_picture(shown, {})->coarsest, 17);
  EXPECT_TRUE(zoom_entry(shown, tiles, "0").ok());
}

RC_GTEST_PROP(ZoomName, TheTilesOfALevelCoverItOnceAndHaveTheirNames, ()) {
  const std::uint64_t height = *rc::gen::inRange<std::uint64_t>(1, 1500);
  const std::uint64_t width = *rc::gen::inRange<std::uint64_t>(1, 1500);
  const Geometry image = make("yx", {height, width, 0}, 1, ElementType::kU8);
  const ZoomPicture picture = picture_of(image);
  const auto level = *rc::gen::inRange(0u, picture.top + 1);
  const Geometry below = geometry::level_geometry(image, picture.top - level);
  const ZoomGrid grid = zoom_grid(picture, level);
  std::uint64_t samples = 0;
  std::set<geometry::Coord> starts;
  for (std::uint64_t row = 0; row < grid.rows; ++row) {
    for (std::uint64_t column = 0; column < grid.columns; ++column) {
      const WindowName tile = zoom_tile(picture, level, column, row);
      RC_ASSERT(geometry::check(below, tile.window).ok());
      samples += tile.window.length[0] * tile.window.length[1];
      starts.insert(tile.window.start);
      const auto parsed = parse_tile_name(picture, level, tile_name(picture, column, row));
      RC_ASSERT(parsed.ok());
      RC_ASSERT(*parsed == tile);
    }
  }
  RC_ASSERT(samples == below.shape[0] * below.shape[1]);
  RC_ASSERT(starts.size() == grid.rows * grid.columns);
}

TEST(ZoomName, NamesInAnotherSpellingDoNotExist) {
  const Geometry image = make("yx", {300, 600}, 3, ElementType::kU8);
  const ZoomPicture picture = picture_of(image);
  EXPECT_TRUE(parse_tile_name(picture, 10, "2_1.jpg").ok());
  for (const char* name : {"3_1.jpg", "2_2.jpg", "02_1.jpg", "2_1.png", "2_1", "2_1.", "_1.jpg", "2_.jpg", "2.jpg", "",
                           "2_1.jpg.jpg", "-1_0.jpg", "2_1_0.jpg", "18446744073709551616_0.jpg"})
    EXPECT_FALSE(parse_tile_name(picture, 10, name).ok()) << name;
  const ZoomName tiles{.kind = ZoomKind::kTiles, .plane = {}, .level = 0};
  EXPECT_EQ(find_name(image, tiles, "10")->level, 10);
  for (const char* name : {"11", "010", "a", "", "4294967296", "-1"})
    EXPECT_EQ(zoom_entry(image, tiles, name).error().code, Errc::kNotFound) << name;
}

TEST(ZoomName, APlaneOfAVolumeIsAPicture) {
  Geometry volume = make("zyx", {20, 400, 300}, 1, ElementType::kU8);
  EXPECT_EQ(find_name(volume, {}, "z/19/dz.dzi")->kind, ZoomKind::kDescription);
  EXPECT_EQ(find_name(volume, {}, "z/19/dz_files/9")->level, 9);
  for (const char* path : {"w", "zy", "z/20", "z/01", "z/1/dz", "z/1/dz_files/10", "y/400"})
    EXPECT_EQ(find_name(volume, {}, path).error().code, Errc::kNotFound) << path;
  const WindowName tile = zoom_tile(picture_of(volume, {{0, 19}}), 8, 0, 0);
  EXPECT_EQ(tile.window.start[0], 19);
  EXPECT_TRUE(tile.window.single[0]);
  // Where levels halve z, the plane of a level is the one that has the sample.
  volume.spacing = {1, 1, 1};
  EXPECT_EQ(zoom_tile(picture_of(volume, {{0, 19}}), 8, 0, 0).window.start[0], 9);
  for (unsigned level = 0; level <= 9; ++level) {
    const WindowName one = zoom_tile(picture_of(volume, {{0, 19}}), level, 0, 0);
    EXPECT_TRUE(geometry::check(geometry::level_geometry(volume, one.level), one.window).ok()) << level;
  }
}

TEST(ZoomName, APlaneAcrossAVolumeHasLevelsOfItsOwn) {
  const Geometry volume = make("zyx", {20, 400, 300}, 1, ElementType::kU8);
  const ZoomPicture picture = picture_of(volume, {{1, 7}});
  EXPECT_EQ(picture.width(), 300);
  EXPECT_EQ(picture.height(), 20);
  const WindowName image = zoom_tile(picture, picture.top, 1, 0), level = zoom_tile(picture, picture.top - 2, 0, 0);
  EXPECT_EQ(to_key(image), to_key(*parse_window_name(volume, "y7,x256+44.jpg"))) << "the image itself: a window of it";
  EXPECT_EQ(level.level, 2);
  EXPECT_EQ(level.plane, (geometry::PlaneIndex{1, 7}));
  EXPECT_EQ(level.window.length, (geometry::Coord{5, 75}));
  EXPECT_NE(to_key(level), to_key(zoom_tile(picture_of(volume, {{1, 8}}), picture.top - 2, 0, 0)));
  EXPECT_TRUE(raster_of(volume, level).ok());
  Geometry shorter = volume;
  shorter.shape[1] = 7;
  EXPECT_EQ(raster_of(shorter, level).error().code, Errc::kOutOfRange);
}

TEST(ZoomName, AWindowOfAPlaneIsAWindowOfTheVolume) {
  const Geometry volume = make("zyx", {20, 400, 300}, 1, ElementType::kU16);
  const auto key = [&](unsigned axis, std::string_view name) {
    return to_key(*parse_plane_window(volume, {axis, 7}, name));
  };
  const auto in_image = [&](std::string_view name) { return to_key(*parse_window_name(volume, name)); };
  EXPECT_EQ(key(0, "y3,x5+6.npy"), in_image("z7,y3,x5+6.npy"));
  EXPECT_EQ(key(0, "l1.png"), in_image("z7,l1.png"));
  EXPECT_EQ(key(1, "z3+5,x9.raw"), in_image("y7,z3+5,x9.raw"));
  EXPECT_EQ(key(2, "z-3+5,clip.npy"), in_image("x7,z-3+5,clip.npy"));
  EXPECT_EQ(parse_plane_window(volume, {2, 7}, "l2.raw")->plane, (geometry::PlaneIndex{2, 7}));
  for (const char* name : {"x3.npy", "z20.npy", "l10.npy", "all", "cut,0,0,0,1,0,0,0,1,0,4,3.npy"})
    EXPECT_FALSE(parse_plane_window(volume, {2, 7}, name).ok()) << name;
  EXPECT_FALSE(parse_plane_window(volume, {2, 300}, "all.npy").ok());
}

TEST(ZoomName, ImagesThatAreNoPicturesHaveNoDeepZoom) {
  EXPECT_FALSE(zoom_picture(make("x", {40}, 1, ElementType::kU8), {}).ok());
  EXPECT_FALSE(zoom_picture(make("tx", {40, 40}, 1, ElementType::kU8), {}).ok());
  EXPECT_FALSE(zoom_picture(make("yx", {40, 40}, 1, ElementType::kF32), {}).ok());
  EXPECT_FALSE(zoom_picture(make("yx", {40, 40}, 7, ElementType::kU8), {}).ok());
  EXPECT_FALSE(zoom_picture(make("yx", {0, 40}, 1, ElementType::kU8), {}).ok());
  EXPECT_FALSE(zoom_picture(make("zyx", {4, 40, 40}, 1, ElementType::kU8), {}).ok());
  EXPECT_TRUE(plane_axes(make("yx", {40, 40}, 1, ElementType::kU8)).empty());
  EXPECT_EQ(plane_axes(make("tyx", {4, 40, 40}, 3, ElementType::kU8)), std::vector<unsigned>{0});
  EXPECT_EQ(plane_axes(make("ytx", {4, 40, 40}, 3, ElementType::kU8)), std::vector<unsigned>{1});
  EXPECT_EQ(plane_axes(make("zyx", {4, 40, 40}, 1, ElementType::kU8)), (std::vector<unsigned>{0, 1, 2}));
  EXPECT_TRUE(plane_axes(make("tzyx", {4, 4, 40, 40}, 1, ElementType::kU8)).empty());
  EXPECT_TRUE(plane_axes(make("tyx", {0, 40, 40}, 3, ElementType::kU8)).empty());
}

}  // namespace
}  // namespace mdfs::views
