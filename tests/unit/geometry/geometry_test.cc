// The rules that a geometry and a window must keep.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/geometry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "mdfs/ondisk.h"

namespace mdfs::geometry {
namespace {

Geometry photograph() {
  Geometry geometry;
  geometry.rank = 2;
  geometry.shape = {2048, 3072, 0};
  geometry.extent = {128, 128, 0};
  geometry.channels = 3;
  geometry.axes = "yx";
  return geometry;
}

TEST(GeometryTest, SizesOfAPhotograph) {
  const Geometry geometry = photograph();
  ASSERT_TRUE(check(geometry).ok());
  EXPECT_EQ(geometry.sample_bytes(), 3u);
  EXPECT_EQ(geometry.slab_bytes(), 3072u * 3);
  EXPECT_EQ(geometry.size_bytes(), 2048u * 3072 * 3);
  EXPECT_EQ(geometry.extent_bytes(), 49152u);
  EXPECT_EQ(geometry.grid(), (Coord{16, 24, 0}));
}

TEST(GeometryTest, TheCountOfExtentsIsTheProductAndDoesNotWrap) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(extent_count(2, {16, 24, 5}), 16u * 24);
  EXPECT_EQ(extent_count(3, {kMost, 3, 2}), kMost);
  EXPECT_EQ(extent_count(3, {0, kMost, kMost}), 0u);
}

TEST(GeometryTest, AnImageGrowsByWholeSlabsUpToItsLimit) {
  Geometry geometry = photograph();
  EXPECT_EQ(max_bytes(geometry), kMaxImageBytes / geometry.slab_bytes() * geometry.slab_bytes());
  geometry.rank = 3;
  geometry.axes = "zyx";
  geometry.shape = {1, 1, 1};
  geometry.channels = 1;
  geometry.extent = {1, 16, 16};
  ASSERT_TRUE(check(geometry).ok());
  EXPECT_EQ(max_bytes(geometry), std::uint64_t{1} << 56);  // extents of one byte each
}

TEST(GeometryTest, AnImageMayHaveNoSlabYet) {
  Geometry geometry = photograph();
  geometry.shape[0] = 0;
  EXPECT_TRUE(check(geometry).ok());
  EXPECT_EQ(geometry.size_bytes(), 0u);
  EXPECT_EQ(geometry.grid()[0], 0u);
}

struct Refusal {
  const char* what;
  std::function<void(Geometry&)> spoil;
};

class GeometryRefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(GeometryRefusalTest, IsRefusedWithWords) {
  Geometry geometry = photograph();
  GetParam().spoil(geometry);
  const Status status = check(geometry);
  ASSERT_FALSE(status.ok()) << GetParam().what;
  EXPECT_FALSE(status.error().where.empty());
}

constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;

INSTANTIATE_TEST_SUITE_P(
    All, GeometryRefusalTest,
    ::testing::Values(Refusal{"rank 0", [](Geometry& g) { g.rank = 0; }},
                      Refusal{"rank 4", [](Geometry& g) { g.rank = 4; }},
                      Refusal{"a row of extents beyond 2^62 bytes",
                              [](Geometry& g) {
                                g.shape = {1, kHuge >> 1, 0};
                                g.channels = 1;
                                g.extent = {16, 1024, 0};
                              }},
                      Refusal{"more extents in a row than have numbers",
                              [](Geometry& g) {
                                g.rank = 3;
                                g.axes = "zyx";
                                g.shape = {0, 1, kHuge >> 1};
                                g.channels = 1;
                                g.extent = {1, 64, 1};
                              }},
                      Refusal{"no column", [](Geometry& g) { g.shape[1] = 0; }},
                      Refusal{"empty extent", [](Geometry& g) { g.extent[0] = 0; }},
                      Refusal{"no channel", [](Geometry& g) { g.channels = 0; }},
                      Refusal{"too many channels", [](Geometry& g) { g.channels = 65536; }},
                      Refusal{"unknown type", [](Geometry& g) { g.type = static_cast<ElementType>(12); }},
                      Refusal{"type 0", [](Geometry& g) { g.type = static_cast<ElementType>(0); }},
                      Refusal{"unknown codec", [](Geometry& g) { g.codec = static_cast<Codec>(9); }},
                      Refusal{"codec level", [](Geometry& g) { g.codec_level = 23; }},
                      Refusal{"size overflows",
                              [](Geometry& g) {
                                g.shape = {kHuge, kHuge, 0};
                              }},
                      Refusal{"one byte too large",
                              [](Geometry& g) {
                                g.shape = {kHuge / 2, 1, 0};
                              }},
                      Refusal{"slab too large though there is none",
                              [](Geometry& g) {
                                g.shape = {0, kHuge, 0};
                              }},
                      Refusal{"extent overflows",
                              [](Geometry& g) {
                                g.extent = {kHuge, 2, 0};
                              }},
                      Refusal{"extent too large",
                              [](Geometry& g) {
                                g.extent = {4096, 4096, 0};
                              }},
                      Refusal{"axes missing", [](Geometry& g) { g.axes = ""; }},
                      Refusal{"axis twice", [](Geometry& g) { g.axes = "xx"; }},
                      Refusal{"axis c beside interleaved channels",
                              [](Geometry& g) {
                                g.axes = "cx";
                                g.channels = 3;
                              }},
                      Refusal{"axis c behind all others", [](Geometry& g) { g.axes = "yc"; }},
                      Refusal{"level as an axis", [](Geometry& g) { g.axes = "yl"; }},
                      Refusal{"capital axis", [](Geometry& g) { g.axes = "yX"; }},
                      Refusal{"negative spacing", [](Geometry& g) { g.spacing[0] = -1; }},
                      Refusal{"unit of a control character", [](Geometry& g) { g.unit[0] = "\x1b[31m"; }},
                      Refusal{"unit that is no UTF-8", [](Geometry& g) { g.unit[1] = "\xff"; }},
                      Refusal{"spacing no number", [](Geometry& g) { g.spacing[1] = std::nan(""); }},
                      Refusal{"long unit", [](Geometry& g) { g.unit[0] = "micrometre"; }}));

TEST(ElementTypeTest, NamesReadBackAndNumbersAreThoseOnDisk) {
  const std::vector<std::tuple<unsigned, std::string_view, unsigned, std::string_view>> expected = {
      {MDFS_TYPE_U8, "u8", 1, "|u1"},   {MDFS_TYPE_U16, "u16", 2, "<u2"}, {MDFS_TYPE_U32, "u32", 4, "<u4"},
      {MDFS_TYPE_U64, "u64", 8, "<u8"}, {MDFS_TYPE_I8, "i8", 1, "|i1"},   {MDFS_TYPE_I16, "i16", 2, "<i2"},
      {MDFS_TYPE_I32, "i32", 4, "<i4"}, {MDFS_TYPE_I64, "i64", 8, "<i8"}, {MDFS_TYPE_F16, "f16", 2, "<f2"},
      {MDFS_TYPE_F32, "f32", 4, "<f4"}, {MDFS_TYPE_F64, "f64", 8, "<f8"}};
  for (const auto& [number, text, bytes, numpy] : expected) {
    const auto type = parse_element_type(text);
    ASSERT_TRUE(type.ok()) << text;
    EXPECT_EQ(static_cast<unsigned>(*type), number);
    EXPECT_EQ(name(*type), text);
    EXPECT_EQ(element_bytes(*type), bytes);
    EXPECT_EQ(numpy_descr(*type), numpy);
  }
}

TEST(ElementTypeTest, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  const auto type = parse_element_type("f128");
  ASSERT_FALSE(type.ok());
  EXPECT_NE(type.error().where.find("f64"), std::string::npos);
  EXPECT_FALSE(parse_element_type("").ok());
}

TEST(WindowTest, TheWholeImageIsInside) {
  const Geometry geometry = photograph();
  EXPECT_TRUE(check(geometry, whole(geometry)).ok());
  EXPECT_EQ(window_bytes(geometry, whole(geometry)), geometry.size_bytes());
}

TEST(WindowTest, WhatLeavesTheImageIsRefused) {
  const Geometry geometry = photograph();
  const auto refuses = [&](const Coord& start, const Coord& length) {
    Window window;
    window.start = start;
    window.length = length;
    return !check(geometry, window).ok();
  };
  EXPECT_FALSE(refuses({2047, 3071, 0}, {1, 1, 0}));
  EXPECT_TRUE(refuses({2048, 0, 0}, {1, 1, 0}));
  EXPECT_TRUE(refuses({0, 3000, 0}, {1, 73, 0}));
  EXPECT_TRUE(refuses({0, ~std::uint64_t{0}, 0}, {1, 2, 0}));  // start + length wraps
  EXPECT_TRUE(refuses({0, 1, 0}, {1, ~std::uint64_t{0}, 0}));
  EXPECT_TRUE(refuses({0, 0, 0}, {0, 1, 0}));
}

TEST(WindowTest, ArrayShapesDropSingleIndicesAndNameSeveralChannels) {
  Geometry geometry = photograph();
  Window window = whole(geometry);
  EXPECT_EQ(array_shape(geometry, window), (std::vector<std::uint64_t>{2048, 3072, 3}));
  window.channel = 1;
  window.single[0] = true;
  window.length[0] = 1;
  EXPECT_EQ(array_shape(geometry, window), (std::vector<std::uint64_t>{3072}));
  EXPECT_EQ(window_bytes(geometry, window), 3072u);
  geometry.channels = 1;
  window.channel.reset();
  EXPECT_EQ(array_shape(geometry, window), (std::vector<std::uint64_t>{3072}));
}

}  // namespace
}  // namespace mdfs::geometry
