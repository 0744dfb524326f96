// Windows of resolution levels against means that are taken sample by sample.
// SPDX-License-Identifier: Apache-2.0
#include "views/level_view.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "geometry/level.h"
#include "small_image.h"
#include "views/level_source.h"

namespace mdfs::views {
namespace {

using geometry::Coord;
using geometry::ElementType;
using geometry::Geometry;

std::uint64_t position(const Geometry& geometry, const Coord& at, unsigned channel) {
  std::uint64_t sample = 0;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) sample = sample * geometry.shape[axis] + at[axis];
  return sample * geometry.channels + channel;
}

// Calls visit for every index of a box.
template <typename Visit>
void each(unsigned rank, const Coord& start, const Coord& length, const Visit& visit, Coord at = {},
          unsigned axis = 0) {
  if (axis == rank) return visit(at);
  for (std::uint64_t i = 0; i < length[axis]; ++i) {
    at[axis] = start[axis] + i;
    each(rank, start, length, visit, at, axis + 1);
  }
}

using Samples = std::vector<std::int64_t>;

// All samples of the level above `geometry`.
Samples next(const Geometry& geometry, const Samples& samples) {
  const Geometry above = geometry::level_geometry(geometry, 1);
  Samples result;
  each(above.rank, {}, above.shape, [&](const Coord& at) {
    geometry::Window one;
    one.start = at;
    one.length.fill(1);
    const geometry::Window source = geometry::source_window(geometry, one);
    for (unsigned channel = 0; channel < geometry.channels; ++channel) {
      double sum = 0, count = 0;
      each(geometry.rank, source.start, source.length, [&](const Coord& below) {
        sum += static_cast<double>(samples[position(geometry, below, channel)]);
        ++count;
      });
      result.push_back(std::llrint(sum / count));
    }
  });
  return result;
}

using LevelViewTest = ImagesTest;

RC_GTEST_FIXTURE_PROP(LevelViewTest, AWindowOfALevelIsTheMeanOfTheLevelBelow, ()) {
  const auto axes = *rc::gen::element<std::string>("x", "yx", "zyx", "tyx", "tx", "tzyx", "tczyx", "tcyx");
  Coord shape{};
  for (std::size_t axis = 0; axis < axes.size(); ++axis)
    shape[axis] = *rc::gen::inRange<std::uint64_t>(2, axes.size() > 3 ? 12 : 40);
  Geometry geometry = make(axes, shape, axes.find('c') == std::string::npos ? *rc::gen::inRange(1u, 4u) : 1u,
                           *rc::gen::element(ElementType::kU8, ElementType::kI16));
  for (unsigned axis = 0; axis < geometry.rank; ++axis) geometry.spacing[axis] = *rc::gen::element(0.0, 1.0, 2.0);
  const volume::Ino ino = add(geometry);
  const ByteVector& bytes = volume_.bytes(ino);
  Samples samples;
  for (std::size_t i = 0; i < bytes.size(); i += element_bytes(geometry.type)) {
    const auto low = static_cast<unsigned>(bytes[i]);
    samples.push_back(geometry.type == ElementType::kU8
                          ? std::int64_t{low}
                          : static_cast<std::int16_t>(low | static_cast<unsigned>(bytes[i + 1]) << 8));
  }
  WindowName name;
  name.level = *rc::gen::inRange(1u, geometry::level_count(geometry) + 1);
  Geometry level = geometry;
  for (unsigned n = 0; n < name.level; ++n) {
    samples = next(level, samples);
    level = geometry::level_geometry(level, 1);
  }
  for (unsigned axis = 0; axis < level.rank; ++axis) {
    name.window.start[axis] = *rc::gen::inRange<std::uint64_t>(0, level.shape[axis]);
    name.window.length[axis] = *rc::gen::inRange<std::uint64_t>(1, level.shape[axis] - name.window.start[axis] + 1);
  }
  if (level.channels > 1 && *rc::gen::arbitrary<bool>()) name.window.channel = *rc::gen::inRange(0u, level.channels);

  const auto staging = pool();
  const auto view = open_level(volume_, ino, geometry, name, *staging, 0);
  RC_ASSERT(view.ok());
  ByteVector expected;
  each(level.rank, name.window.start, name.window.length, [&](const Coord& at) {
    for (unsigned channel = 0; channel < level.channels; ++channel) {
      if (name.window.channel && *name.window.channel != channel) continue;
      const std::int64_t sample = samples[position(level, at, channel)];
      for (unsigned byte = 0; byte < element_bytes(level.type); ++byte)
        expected.push_back(static_cast<std::byte>(sample >> (8 * byte) & 0xff));
    }
  });
  RC_ASSERT(bytes_of(**view) == expected);
}

TEST_F(LevelViewTest, AnArrayAndAPictureHaveTheShapeOfTheLevel) {
  const Geometry geometry = make("yx", {21, 30}, 1, ElementType::kU16);
  const volume::Ino ino = add(geometry);
  const auto staging = pool();
  for (const auto& [text, bytes] : {std::pair("l1.npy", 128 + 11 * 15 * 2), {"l1.pgm", 15 + 11 * 15 * 2}}) {
    const WindowName name = *parse_window_name(geometry, text);
    EXPECT_FALSE(is_writable(name));
    EXPECT_EQ(to_name(geometry, name), text);
    const auto view = open_level(volume_, ino, geometry, name, *staging, 0);
    ASSERT_TRUE(view.ok()) << view.error().message();
    EXPECT_EQ((*view)->size_bytes(), **known_size(geometry, name));
    EXPECT_NEAR(static_cast<double>((*view)->size_bytes()), bytes, 128);
  }
  EXPECT_NE(to_key(*parse_window_name(geometry, "l1,y0+2.raw")), to_key(*parse_window_name(geometry, "l2,y0+2.raw")));
}

TEST_F(LevelViewTest, LaterWritesDoNotChangeAnOpenWindowAndTheNextOpenSeesThem) {
  const Geometry geometry = make("yx", {20, 30}, 1, ElementType::kU8);
  const volume::Ino ino = add(geometry);
  const auto staging = pool();
  const WindowName name = *parse_window_name(geometry, "l1.raw");
  const auto view = open_level(volume_, ino, geometry, name, *staging, 0);
  ASSERT_TRUE(view.ok());
  const ByteVector before = bytes_of(**view);
  for (const std::size_t at : {0u, 1u, 30u, 31u}) volume_.bytes(ino)[at] = std::byte{77};
  EXPECT_EQ(bytes_of(**view), before);
  const auto again = open_level(volume_, ino, geometry, name, *staging, 0);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(bytes_of(**again)[0], std::byte{77});
}

TEST_F(LevelViewTest, AWindowThatStandsForTooManyBytesIsTooBig) {
  const Geometry geometry = make("yx", {20, 30}, 3, ElementType::kU8);
  const volume::Ino ino = add(geometry);
  StagingLimits limits;
  limits.window_bytes = 449;
  const auto small = pool(limits);
  EXPECT_EQ(open_level(volume_, ino, geometry, *parse_window_name(geometry, "l1.raw"), *small, 0).error().code,
            Errc::kTooBig);
  EXPECT_TRUE(open_level(volume_, ino, geometry, *parse_window_name(geometry, "l1,y0+9.raw"), *small, 0).ok());
  const Geometry wide = make("yx", {1, kMaxSourceRowBytes + 1}, 1, ElementType::kU8);
  const auto large = pool();
  EXPECT_EQ(open_level(volume_, add(wide), wide, *parse_window_name(wide, "l1.raw"), *large, 0).error().code,
            Errc::kTooBig);
}

TEST_F(LevelViewTest, AWindowOfALevelThatAShorterImageLacksIsOutOfRange) {
  const Geometry geometry = make("yx", {20, 1}, 1, ElementType::kU8);
  const WindowName name = *parse_window_name(geometry, "l5.raw");
  const Geometry shorter = make("yx", {2, 1}, 1, ElementType::kU8);
  EXPECT_EQ(view_window(shorter, name).error().code, Errc::kOutOfRange);
  EXPECT_FALSE(parse_window_name(geometry, "l6.raw").ok());
}

}  // namespace
}  // namespace mdfs::views
