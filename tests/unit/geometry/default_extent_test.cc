// Default extents: big enough for a disk, small enough for a window, no larger than the image.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/default_extent.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/checked.h"
#include "generators.h"

namespace mdfs::geometry {
namespace {

constexpr std::uint64_t kBig = 16384;

std::uint64_t bytes(unsigned rank, const Coord& extent, std::uint64_t sample_bytes) {
  return testing::volume(rank, extent) * sample_bytes;
}

TEST(DefaultExtentTest, ThoseOfCommonImages) {
  EXPECT_EQ(default_extent(2, {kBig, kBig, 0}, 3, "yx"), (Coord{256, 256, 0}));
  EXPECT_EQ(default_extent(2, {kBig, kBig, 0}, 4, "yx"), (Coord{256, 256, 0}));
  EXPECT_EQ(default_extent(2, {kBig, kBig, 0}, 1, "yx"), (Coord{256, 256, 0}));
  EXPECT_EQ(default_extent(2, {kBig, kBig, 0}, 2, "yx"), (Coord{256, 256, 0}));
  EXPECT_EQ(default_extent(2, {kBig, kBig, 0}, 12, "yx"), (Coord{128, 128, 0}));
  EXPECT_EQ(default_extent(3, {768, 768, 768}, 1, "zyx"), (Coord{32, 64, 64}));
  EXPECT_EQ(default_extent(3, {768, 768, 768}, 2, "zyx"), (Coord{16, 64, 64}));
  EXPECT_EQ(default_extent(3, {768, 768, 768}, 4, "zyx"), (Coord{16, 32, 64}));
  EXPECT_EQ(default_extent(3, {768, 768, 768}, 8, "zyx"), (Coord{16, 32, 32}));
  EXPECT_EQ(default_extent(3, {132, 720, 1280}, 3, "tyx"), (Coord{4, 128, 128}));
  EXPECT_EQ(default_extent(2, {kBig, kBig, 0}, 1, "tx"), (Coord{4, 16384, 0}));
  EXPECT_EQ(default_extent(1, {1u << 30, 0, 0}, 4, "x"), (Coord{32768, 0, 0}));
}

TEST(DefaultExtentTest, LargeImagesOfEverySampleSizeGetFortyEightTo256Kib) {
  for (const std::string_view axes : {"x", "yx", "zyx", "tyx"})
    for (std::uint64_t sample_bytes = 1; sample_bytes <= 64; ++sample_bytes) {
      const auto rank = static_cast<unsigned>(axes.size());
      const Coord extent = default_extent(rank, {1u << 20, 1u << 20, 1u << 20}, sample_bytes, axes);
      EXPECT_GE(bytes(rank, extent, sample_bytes), kSmallestDefaultExtentBytes) << axes << " " << sample_bytes;
      EXPECT_LE(bytes(rank, extent, sample_bytes), kLargestDefaultExtentBytes) << axes << " " << sample_bytes;
    }
}

TEST(DefaultExtentTest, ASmallImageGetsAnExtentOfItsOwnSize) {
  EXPECT_EQ(default_extent(2, {100, 100, 0}, 1, "yx"), (Coord{112, 112, 0}));
  EXPECT_EQ(default_extent(3, {5, 20, 20}, 1, "zyx"), (Coord{5, 32, 32}));
  EXPECT_EQ(default_extent(3, {2, 720, 1280}, 3, "tyx")[0], 2u);
}

TEST(DefaultExtentTest, ANarrowImageGetsLongExtents) {
  const Coord extent = default_extent(2, {16, 1000000, 0}, 1, "yx");
  EXPECT_EQ(extent[0], 16u);
  EXPECT_GE(bytes(2, extent, 1), kSmallestDefaultExtentBytes);
}

TEST(DefaultExtentTest, PaddingIsSharedOut) {
  EXPECT_EQ(default_extent(2, {300, 300, 0}, 1, "yx"), (Coord{160, 160, 0}));
}

TEST(DefaultExtentTest, AnImageWithoutSlabsYetGetsAFullExtent) {
  EXPECT_EQ(default_extent(2, {0, kBig, 0}, 3, "yx"), (Coord{256, 256, 0}));
  EXPECT_EQ(default_extent(3, {0, 720, 1280}, 3, "tyx"), (Coord{4, 128, 128}));
}

TEST(DefaultExtentTest, ARowOfExtentsStaysWithinTheLargestImage) {
  for (const unsigned bits : {57u, 58u, 60u, 62u}) {
    Geometry geometry;
    geometry.rank = 2;
    geometry.axes = "yx";
    geometry.shape = {1, std::uint64_t{1} << bits, 0};
    geometry.extent = default_extent(2, geometry.shape, 1, "yx");
    EXPECT_TRUE(check(geometry).ok()) << bits;
  }
}

TEST(DefaultExtentTest, StepsAlongTimeAndChannelsHaveExtentsOfTheirOwn) {
  EXPECT_EQ(default_extent(4, {100, 64, 512, 512}, 2, "tzyx"), (Coord{1, 16, 64, 64}));
  EXPECT_EQ(default_extent(5, {100, 3, 64, 512, 512}, 2, "tczyx"), (Coord{1, 1, 16, 64, 64}));
  EXPECT_EQ(default_extent(4, {100, 3, 2048, 2048}, 2, "tcyx"), (Coord{1, 1, 256, 256}));
  EXPECT_EQ(default_extent(3, {3, 2048, 2048}, 2, "cyx"), (Coord{1, 256, 256}));
}

TEST(DefaultExtentTest, StepsThatAreSmallShareExtents) {
  EXPECT_EQ(default_extent(5, {100, 3, 4, 64, 64}, 1, "tczyx"), (Coord{1, 3, 4, 64, 64}));
  EXPECT_EQ(default_extent(4, {0, 2, 64, 64}, 1, "tcyx"), (Coord{8, 2, 64, 64}));
}

RC_GTEST_PROP(DefaultExtentTest, IsValidAndNeverLargerThanTheImageNeeds, ()) {
  Geometry geometry;
  geometry.rank = testing::any_rank();
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    const auto bits = *rc::gen::inRange(0, 18);
    geometry.shape[axis] = *rc::gen::inRange<std::uint64_t>(1, (2u << bits) + 1);
  }
  geometry.channels = *rc::gen::element(1u, 2u, 3u, 4u, 7u, 100u, 65535u);
  geometry.type = static_cast<ElementType>(*rc::gen::inRange(1, 12));
  std::uint64_t size_bytes = geometry.sample_bytes();
  for (unsigned axis = 0; axis < geometry.rank; ++axis)
    size_bytes = checked_mul(size_bytes, geometry.shape[axis]).value_or(UINT64_MAX);
  RC_PRE(size_bytes <= kMaxImageBytes);
  geometry.axes = default_axes(geometry.rank, geometry.rank > 1 && *rc::gen::arbitrary<bool>(), geometry.channels > 1);
  geometry.extent = default_extent(geometry.rank, geometry.shape, geometry.sample_bytes(), geometry.axes);
  RC_ASSERT(check(geometry).ok());
  for (unsigned axis = 0; axis < geometry.rank; ++axis)
    RC_ASSERT(geometry.extent[axis] <= align_up(geometry.shape[axis], 16));
  RC_ASSERT(
      (geometry.extent_bytes() <= kLargestDefaultExtentBytes || testing::volume(geometry.rank, geometry.extent) <= 4));
}

TEST(TrimmedExtentTest, HasNoSideBeyondAnAxisThatDoesNotGrow) {
  const auto trimmed = [](unsigned rank, const Coord& shape, const Coord& extent) {
    Geometry geometry;
    geometry.rank = rank;
    geometry.shape = shape;
    geometry.extent = extent;
    return trimmed_extent(geometry);
  };
  EXPECT_EQ(trimmed(4, {3, 3, 255, 1}, {100, 4096, 3, 1}), (Coord{100, 16, 3, 1}));
  EXPECT_EQ(trimmed(2, {3, 300}, {512, 512}), (Coord{512, 304}));
  EXPECT_EQ(trimmed(2, {600, 600}, {512, 512}), (Coord{512, 512}));
  EXPECT_EQ(trimmed(1, {3}, {512}), (Coord{512})) << "images grow along their first axis";
  EXPECT_EQ(trimmed(2, {0, 5}, {512, 6}), (Coord{512, 6})) << "up to 16 a side may be padded, for tiles";
}

TEST(DefaultAxesTest, Names) {
  EXPECT_EQ(default_axes(1), "x");
  EXPECT_EQ(default_axes(2), "yx");
  EXPECT_EQ(default_axes(3), "zyx");
  EXPECT_EQ(default_axes(3, true), "tyx");
  EXPECT_EQ(default_axes(4), "tzyx");
  EXPECT_EQ(default_axes(5), "tczyx");
  EXPECT_EQ(default_axes(5, false, true), "stzyx") << "c would be the interleaved channels";
}

}  // namespace
}  // namespace mdfs::geometry
