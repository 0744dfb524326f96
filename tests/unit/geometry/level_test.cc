// Claims about the shapes of resolution levels.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/level.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "generators.h"
#include "geometry/window_spec.h"

namespace mdfs::geometry {
namespace {

Geometry image_of(std::string axes, Coord shape, std::array<double, kMaxRank> spacing = {}) {
  Geometry geometry;
  geometry.rank = static_cast<unsigned>(axes.size());
  geometry.axes = std::move(axes);
  geometry.shape = shape;
  geometry.spacing = spacing;
  return geometry;
}

TEST(LevelTest, ALevelHalvesThePlaneUntilOneSampleIsLeft) {
  const Geometry photo = image_of("yx", {2048, 3073}, {0.5, 0.5});
  EXPECT_EQ(level_count(photo), 12u);
  EXPECT_EQ(level_geometry(photo, 0), photo);
  EXPECT_EQ(level_geometry(photo, 1).shape, (Coord{1024, 1537}));
  EXPECT_EQ(level_geometry(photo, 2).shape, (Coord{512, 769}));
  EXPECT_EQ(level_geometry(photo, 2).spacing[0], 2.0);
  EXPECT_EQ(level_geometry(photo, 12).shape, (Coord{1, 1}));
  EXPECT_EQ(level_count(image_of("x", {5})), 3u);
  EXPECT_EQ(level_count(image_of("yx", {1, 1})), 0u);
}

TEST(LevelTest, TimeIsNeverHalved) {
  EXPECT_EQ(level_geometry(image_of("tyx", {9, 8, 8}, {1, 1, 1}), 2).shape, (Coord{9, 2, 2}));
  EXPECT_EQ(level_geometry(image_of("tx", {9, 8}), 3).shape, (Coord{9, 1}));
  EXPECT_EQ(level_count(image_of("t", {9})), 0u);
}

TEST(LevelTest, AxesBeforeTheLastThreeAreNeverHalved) {
  const Geometry image = image_of("stzyx", {9, 8, 7, 16, 16}, {1, 1, 1, 1, 1});
  EXPECT_EQ(level_geometry(image, 1).shape, (Coord{9, 8, 4, 8, 8}));
  EXPECT_EQ(level_geometry(image_of("tczyx", {9, 8, 7, 16, 16}), 4).shape, (Coord{9, 8, 7, 1, 1}));
  EXPECT_EQ(level_geometry(image_of("tcyx", {9, 8, 16, 16}, {1, 1, 1, 1}), 1).shape, (Coord{9, 8, 8, 8}));
}

TEST(LevelTest, PlanesAreHalvedOnceTheirSpacingIsNoCoarserThanThatOfX) {
  const Geometry volume = image_of("zyx", {64, 64, 64}, {3, 1, 1});
  EXPECT_EQ(level_geometry(volume, 2).shape, (Coord{64, 16, 16}));
  EXPECT_EQ(level_geometry(volume, 3).shape, (Coord{32, 8, 8}));
  EXPECT_EQ(level_geometry(volume, 4).shape, (Coord{16, 4, 4}));
  EXPECT_EQ(level_geometry(image_of("zyx", {64, 64, 64}, {1, 1, 1}), 1).shape, (Coord{32, 32, 32}));
  EXPECT_EQ(level_geometry(image_of("zyx", {64, 64, 64}), 3).shape, (Coord{64, 8, 8})) << "an unknown spacing";
  Geometry other_unit = volume;
  other_unit.unit[0] = "mm";
  EXPECT_EQ(level_geometry(other_unit, 3).shape, (Coord{64, 8, 8}));
}

TEST(LevelTest, AWindowOfALevelIsMadeOfAllSamplesBelowIt) {
  const Geometry photo = image_of("yx", {9, 11});
  const Window source = source_window(photo, *parse_window(level_geometry(photo, 1), "y4,x2+4"));
  EXPECT_EQ(source, *parse_window(photo, "y8+1,x4+7"));
}

RC_GTEST_PROP(LevelTest, TheSourceOfAWindowLiesInsideTheLevelBelow, ()) {
  const Geometry image = testing::any_geometry();
  const unsigned count = level_count(image);
  if (count == 0) return;
  const unsigned level = *rc::gen::inRange(1u, count + 1);
  const Window window = testing::any_window(level_geometry(image, level));
  RC_ASSERT(check(level_geometry(image, level - 1), source_window(level_geometry(image, level - 1), window)).ok());
}

RC_GTEST_PROP(LevelTest, ASpecOfALevelIsReadAsItWasWritten, ()) {
  const Geometry image = testing::any_geometry();
  const unsigned level = *rc::gen::inRange(0u, level_count(image) + 1);
  const LevelWindow window{level, testing::any_window(level_geometry(image, level))};
  const auto parsed = parse_level_window(image, to_spec(image, window));
  RC_ASSERT(parsed.ok());
  RC_ASSERT(parsed->level == level);
  RC_ASSERT(parsed->window == window.window);
}

RC_GTEST_PROP(LevelTest, BytesLieInTheBoxAroundThemAndBoxesInTheBoxesAboveAndBelow, ()) {
  const Geometry image = testing::any_geometry();
  const Window window = testing::any_window(image);
  const SampleBox box = box_of(image, window);
  const SampleBox around = box_below(image, box_above(image, box));
  for (unsigned axis = 0; axis < image.rank; ++axis) {
    RC_ASSERT((around.first[axis] <= box.first[axis] && box.last[axis] <= around.last[axis]));
    RC_ASSERT(around.last[axis] - around.first[axis] <= box.last[axis] - box.first[axis] + 2);
  }
  // From the first to the last sample of the window.
  std::uint64_t first = 0, last = 0;
  for (unsigned axis = 0; axis < image.rank; ++axis) {
    first = first * image.shape[axis] + box.first[axis];
    last = last * image.shape[axis] + box.last[axis] - 1;
  }
  const std::uint64_t sample = image.sample_bytes();
  const SampleBox bytes = box_of_bytes(image.rank, image.shape, sample, first * sample, (last - first + 1) * sample);
  for (unsigned axis = 0; axis < image.rank; ++axis)
    RC_ASSERT((bytes.first[axis] <= box.first[axis] && box.last[axis] <= bytes.last[axis]));
  RC_ASSERT(overlap(image.rank, bytes, box));
}

TEST(LevelTest, TheUsefulLevelsEndWithTheFirstThatOneExtentHolds) {
  Geometry photo = image_of("yx", {300, 100});
  photo.extent = {64, 64};
  EXPECT_EQ(useful_level_count(photo), 3u);  // 150x50, 75x25, 38x13
  photo.extent = {300, 100};
  EXPECT_EQ(useful_level_count(photo), 0u);
}

TEST(LevelTest, ASpecNamesOneLevelThatTheImageHas) {
  const Geometry photo = image_of("yx", {8, 16});
  EXPECT_EQ(parse_level_window(photo, "l1")->window, whole(level_geometry(photo, 1)));
  EXPECT_EQ(parse_level_window(photo, "y1+3,l1,x0")->window, parse_level_window(photo, "l1,y1+3,x0")->window);
  EXPECT_EQ(parse_level_window(photo, "y5")->level, 0u);
  EXPECT_EQ(parse_level_window(photo, "l5").error().code, Errc::kOutOfRange);
  EXPECT_EQ(parse_level_window(photo, "l1,y4").error().code, Errc::kOutOfRange);
  for (const char* const spec : {"l", "l1,l1", "l1,l2", "l1+2", "lx", "l-1"})
    EXPECT_FALSE(parse_level_window(photo, spec).ok()) << spec;
}

}  // namespace
}  // namespace mdfs::geometry
