// Cuts through small volumes, against a plain array, and their grammar.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/cut.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "geometry/copy_box.h"
#include "geometry/cut_spec.h"
#include "geometry/decompose.h"
#include "geometry/level.h"

namespace mdfs::geometry {
namespace {

Geometry cube(ElementType type, Coord shape, Coord extent, std::string axes = "zyx", unsigned channels = 1) {
  Geometry geometry;
  geometry.rank = static_cast<unsigned>(axes.size());
  geometry.axes = std::move(axes);
  geometry.shape = shape;
  geometry.extent = extent;
  geometry.type = type;
  geometry.channels = channels;
  return geometry;
}
const Geometry kCube = cube(ElementType::kU16, {20, 30, 40}, {8, 8, 16});

// The bytes of a tile, from the bytes of the whole image.
ByteVector cut_from(const Geometry& geometry, const CutPlane& plane, const CutTile& tile, ConstBytes image) {
  const std::vector<CutPiece> pieces = cut_pieces(geometry, plane, tile);
  ByteVector samples;
  const Box all = byte_box(geometry, whole(geometry));
  for (const CutPiece& piece : pieces) {
    const Box box = byte_box(geometry, piece.window);
    ByteVector part(window_bytes(geometry, piece.window));
    copy_box(geometry.rank, box.length, image, all.length, box.start, part, box.length, {});
    samples.insert(samples.end(), part.begin(), part.end());
  }
  ByteVector made(tile.samples() * (cut_bytes(geometry, plane) / plane.cut.width / plane.cut.height));
  fill_cut(geometry, plane, tile, pieces, samples, made);
  return made;
}

ByteVector noise(const Geometry& geometry) {
  ByteVector bytes(geometry.size_bytes());
  std::uint32_t state = 1;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

template <typename T>
std::vector<T> as(ConstBytes bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(CutTest, ACutAlongTheAxesIsThePlaneBitForBit) {
  for (const ElementType type : {ElementType::kU8, ElementType::kI64, ElementType::kF16, ElementType::kF64}) {
    const Geometry geometry = cube(type, {5, 6, 7}, {2, 4, 4}, "zyx", 2);
    const ByteVector image = noise(geometry);
    const CutPlane plane{{{0, 0, 3}, {1, 0, 0}, {0, 1, 0}, 7, 6}, {}};
    const std::size_t bytes = 6 * 7 * geometry.sample_bytes();
    const ByteVector expected(image.begin() + static_cast<std::ptrdiff_t>(3 * bytes),
                              image.begin() + static_cast<std::ptrdiff_t>(4 * bytes));
    EXPECT_EQ(cut_from(geometry, plane, whole(plane.cut), image), expected) << name(type);
  }
}

TEST(CutTest, TheHalfBetweenTwoIntegersIsRoundedToTheEvenOne) {
  const Geometry line = cube(ElementType::kI16, {1, 1, 4}, {1, 1, 2});
  const std::int16_t samples[] = {0, 1, 2, -3};
  const CutPlane plane{{{0.5, 0, 0}, {1, 0, 0}, {0, 0, 0}, 3, 1}, {}};
  EXPECT_EQ(as<std::int16_t>(cut_from(line, plane, whole(plane.cut), std::as_bytes(std::span(samples)))),
            (std::vector<std::int16_t>{0, 2, 0}));  // 0.5, 1.5, -0.5
}

TEST(CutTest, SamplesBeyondTheCentresOfTheBorderAreZero) {
  const Geometry line = cube(ElementType::kU8, {1, 1, 3}, {1, 1, 2});
  const std::uint8_t samples[] = {10, 20, 30};
  for (const bool nearest : {false, true}) {
    const CutPlane plane{{{-0.25, 0, 0}, {0.25, 0, 0}, {0, 0, 0}, 11, 1, nearest}, {}};
    const auto made = as<std::uint8_t>(cut_from(line, plane, whole(plane.cut), std::as_bytes(std::span(samples))));
    EXPECT_EQ(made.front(), 0);
    EXPECT_EQ(made[1], 10);
    EXPECT_EQ(made[2], nearest ? 10 : 12);  // 12.5
    EXPECT_EQ(made[3], nearest ? 20 : 15);
    EXPECT_EQ(made[9], 30);
    EXPECT_EQ(made.back(), 0);
  }
}

TEST(CutTest, TheLargestIntegersStayInTheirType) {
  const Geometry line = cube(ElementType::kU64, {1, 1, 2}, {1, 1, 2});
  const std::uint64_t samples[] = {UINT64_MAX, UINT64_MAX};
  const CutPlane plane{{{0.5, 0, 0}, {0, 0, 0}, {0, 0, 0}, 1, 1}, {}};
  EXPECT_EQ(as<std::uint64_t>(cut_from(line, plane, whole(plane.cut), std::as_bytes(std::span(samples)))),
            (std::vector<std::uint64_t>{UINT64_MAX}));
}

TEST(CutTest, ANeighbourOfWeightZeroDoesNotCount) {
  const Geometry square = cube(ElementType::kF32, {1, 2, 2}, {1, 2, 2});
  const float nan = std::nanf("");
  const float samples[] = {1, 2, nan, nan};
  const CutPlane plane{{{0.5, 0, 0}, {0, 0, 0}, {0, 0, 0}, 1, 1}, {}};
  EXPECT_EQ(as<float>(cut_from(square, plane, whole(plane.cut), std::as_bytes(std::span(samples)))),
            std::vector<float>{1.5f});
}

TEST(CutTest, APlaneThroughHugeAxesReadsItsOwnExtentsOnly) {
  Geometry huge =
      cube(ElementType::kU8, {std::uint64_t{1} << 20, std::uint64_t{1} << 20, std::uint64_t{1} << 21}, {64, 64, 64});
  const CutPlane plane{{{1e6, 1e6, 1e6}, {0.8, 0, 0.6}, {0, 1, 0}, 500, 100}, {}};
  const auto pieces = cut_pieces(huge, plane, whole(plane.cut));
  const auto around = window_around(huge, plane);
  ASSERT_TRUE(around.has_value());
  EXPECT_LT(pieces.size(), piece_count(byte_geometry(huge), byte_box(huge, *around)));
}

double any_number() { return *rc::gen::inRange(-80, 600) / 16.0; }

// Any position, direction, type and tile: sample by sample from the whole image.
RC_GTEST_PROP(CutTest, EachSampleIsInterpolatedBetweenItsNeighbours, ()) {
  const Coord shape{*rc::gen::inRange<std::uint64_t>(1, 12), *rc::gen::inRange<std::uint64_t>(1, 12),
                    *rc::gen::inRange<std::uint64_t>(1, 12)};
  const Geometry geometry = cube(ElementType::kF64, shape, {*rc::gen::inRange<std::uint64_t>(1, 6), 3, 4},
                                 *rc::gen::element<std::string>("zyx", "xzy", "yxz"));
  std::vector<double> image(geometry.size_bytes() / 8);
  for (double& sample : image) sample = *rc::gen::inRange(-1000, 1000);
  CutPlane plane;
  for (auto* numbers : {&plane.cut.origin, &plane.cut.u, &plane.cut.v})
    for (double& number : *numbers) number = any_number() / (numbers == &plane.cut.origin ? 4 : 40);
  plane.cut.width = *rc::gen::inRange<std::uint64_t>(1, 12);
  plane.cut.height = *rc::gen::inRange<std::uint64_t>(1, 12);
  plane.cut.nearest = *rc::gen::arbitrary<bool>();
  CutTile tile = whole(plane.cut);
  tile.first_column = *rc::gen::inRange<std::uint64_t>(0, tile.last_column);
  tile.first_row = *rc::gen::inRange<std::uint64_t>(0, tile.last_row);

  const auto made = as<double>(cut_from(geometry, plane, tile, std::as_bytes(std::span(image))));
  std::size_t next = 0;
  std::set<Coord> met;
  for (std::uint64_t row = tile.first_row; row < tile.last_row; ++row)
    for (std::uint64_t column = tile.first_column; column < tile.last_column; ++column) {
      double sum = 0;
      std::array<double, 3> at{};  // along the axes of the image
      bool is_inside = true;
      for (unsigned axis = 0; axis < 3; ++axis) {
        const std::size_t i = std::string_view("xyz").find(geometry.axes[axis]);
        at[axis] = plane.cut.origin[i] + static_cast<double>(row) * plane.cut.v[i] +
                   static_cast<double>(column) * plane.cut.u[i];
        is_inside = is_inside && at[axis] >= 0 && at[axis] <= static_cast<double>(shape[axis] - 1);
        if (plane.cut.nearest) at[axis] = std::floor(at[axis] + 0.5);
      }
      for (unsigned corner = 0; is_inside && corner < 8; ++corner) {
        double weight = 1;
        Coord index{};
        for (unsigned axis = 0; axis < 3; ++axis) {
          const double fraction = at[axis] - std::floor(at[axis]);
          const bool high = (corner >> axis & 1) != 0;
          weight *= high ? fraction : 1 - fraction;
          index[axis] = static_cast<std::uint64_t>(std::floor(at[axis])) + (high ? 1 : 0);
        }
        if (weight == 0) continue;
        sum += weight * image[(index[0] * shape[1] + index[1]) * shape[2] + index[2]];
        Coord extent{};
        for (unsigned axis = 0; axis < 3; ++axis) extent[axis] = index[axis] / geometry.extent[axis];
        met.insert(extent);
      }
      RC_ASSERT(std::abs(made[next++] - sum) < 1e-9);
    }
  std::set<Coord> read;
  for (const CutPiece& piece : cut_pieces(geometry, plane, tile)) {
    read.insert(piece.extent);
    RC_ASSERT(window_around(geometry, plane).has_value());
    RC_ASSERT(check(geometry, piece.window).ok());
  }
  RC_ASSERT(read == met);
}

// ---- the grammar

TEST(CutSpecTest, SaysWhereTheCutLies) {
  const auto cut = parse_cut(kCube, "cut,1.5,-2,3,1,0,0,0,0.6,0.8,400,300,near");
  ASSERT_TRUE(cut.ok()) << cut.error().where;
  EXPECT_EQ(cut->plane.cut, (Cut{{1.5, -2, 3}, {1, 0, 0}, {0, 0.6, 0.8}, 400, 300, true}));
  EXPECT_EQ(to_spec(kCube, *cut), "cut,1.5,-2,3,1,0,0,0,0.6,0.8,400,300,near");
}

TEST(CutSpecTest, SpellingsOfOneCutAreOne) {
  const auto spelled = [](std::string_view spec) { return to_spec(kCube, *parse_cut(kCube, spec)); };
  EXPECT_EQ(spelled("cut,01.50,-0,3.0,1,0,0,0,1,0,4,3,l0"), "cut,1.5,0,3,1,0,0,0,1,0,4,3");
  EXPECT_EQ(spelled("cut,0,0,0,1,0,0,0,1,0,4,3,l1,near"), spelled("cut,0,0,0,1,0,0,0,1,0,4,3,near,l1"));
  EXPECT_EQ(spelled("cut,0.7071067811865476,0,0,1,0,0,0,1,0,4,3"), "cut,0.7071067811865476,0,0,1,0,0,0,1,0,4,3");
}

TEST(CutSpecTest, OtherAxesNeedAnIndexAndChannelsMayHaveOne) {
  const Geometry movie = cube(ElementType::kU8, {4, 5, 6, 7}, {1, 4, 4, 4}, "tzyx", 3);
  const std::string start = "cut,0,0,0,1,0,0,0,1,0,4,3";
  EXPECT_FALSE(parse_cut(movie, start).ok());
  EXPECT_FALSE(parse_cut(movie, start + ",t4").ok());
  EXPECT_FALSE(parse_cut(movie, start + ",t1+2").ok());
  const auto cut = parse_cut(movie, start + ",c2,t3");
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(cut->plane.window.start[0], 3u);
  EXPECT_EQ(cut->plane.window.channel, 2u);
  EXPECT_EQ(to_spec(movie, *cut), start + ",t3,c2");
  EXPECT_FALSE(parse_cut(cube(ElementType::kU8, {4, 5, 6}, {4, 4, 4}, "tyx"), start).ok()) << "no volume";
}

TEST(CutSpecTest, MalformedCutsSayWhy) {
  const std::string end = ",0,0,1,0,4,3";
  for (const char* spec :
       {"cut", "cut,", "cut,0,0,0,1,0,0,0,1,0,4", "cut,0,0,0,1,0,0,0,1,0,4,3,", "cut,0,0,0,1,0,0,0,1,0,4,3,near,near",
        "cut,0,0,0,1,0,0,0,1,0,0,3", "cut,0,0,0,1,0,0,0,1,0,4,0", "cut,0,0,0,1,0,0,0,1,0,4.5,3",
        "cut,0,0,0,1,0,0,0,1,0,04,3", "cut,0,0,0,1,0,0,0,1,0,-4,3", "cut,0,0,0,1,0,0,0,1,0,4,3,z2",
        "cut,0,0,0,1,0,0,0,1,0,4,3,1,2,3,4", "cut,0,0,0,1,0,0,0,1,0,4,3,clip", "cut,0,0,0,1,0,0,0,1,0,4,3,l9",
        "cut,0,0,0,1,0,0,0,1,0,4,3,c1", "cut,0,0,0,1,0,0,0,1,0,4,3,far", "cut,0,0,0,1,0,0,0,1,0,4,3,l",
        "cut,0,0,0,1,0,0,0,1,0,4611686018427387904,4611686018427387904"})
    EXPECT_FALSE(parse_cut(kCube, spec).ok()) << spec;
  for (const char* number : {"nan", "inf", "-inf", "0x1p3", "1e3", "1.", ".5", "+1", "--1", "-", " 1", "1 ", "1:2",
                             "123456789012345678", "0.123456789012345678", "1_000"})
    EXPECT_FALSE(parse_cut(kCube, fmt::format("cut,{},0,0,1,0{}", number, end)).ok()) << number;
  EXPECT_TRUE(parse_cut(kCube, fmt::format("cut,{},0,0,1,0{}", "0.00000000000000000000000000001", end)).ok());
}

RC_GTEST_PROP(CutSpecTest, ACanonicalSpellingIsTheSameCut, ()) {
  LevelCut cut;
  for (auto* numbers : {&cut.plane.cut.origin, &cut.plane.cut.u, &cut.plane.cut.v})
    for (double& number : *numbers) number = *rc::gen::inRange(-1000000, 1000000) / 1024.0 / 3;
  cut.plane.cut.width = *rc::gen::inRange<std::uint64_t>(1, 5000);
  cut.plane.cut.height = *rc::gen::inRange<std::uint64_t>(1, 5000);
  cut.plane.cut.nearest = *rc::gen::arbitrary<bool>();
  cut.level = *rc::gen::inRange(0u, level_count(kCube) + 1);
  const auto again = parse_cut(kCube, to_spec(kCube, cut));
  RC_ASSERT(again.ok());
  RC_ASSERT((again->plane.cut == cut.plane.cut && again->level == cut.level));
}

}  // namespace
}  // namespace mdfs::geometry
