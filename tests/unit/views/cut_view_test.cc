// Cuts that are computed at open, over a volume in memory.
// SPDX-License-Identifier: Apache-2.0
#include "views/cut_view.h"

#include <gtest/gtest.h>

#include "small_image.h"

namespace mdfs::views {
namespace {

using geometry::ElementType;
using geometry::Geometry;

class CutViewTest : public ImagesTest {
 protected:
  Result<std::shared_ptr<View>> open(volume::Ino ino, const Geometry& geometry, std::string_view name,
                                     const engine::Stop& stop = {}, const StagingLimits& limits = {}) {
    if (!pool_) pool_ = pool(limits);
    const auto parsed = parse_window_name(geometry, name);
    EXPECT_TRUE(parsed.ok()) << name;
    return open_cut(volume_, ino, geometry, *parsed, *pool_, 0, stop);
  }

  std::unique_ptr<StagingPool> pool_;
};

TEST_F(CutViewTest, ACutOfManyTilesIsThePlane) {
  const Geometry geometry = make("zyx", {3, 700, 1100}, 1, ElementType::kU8);
  const volume::Ino ino = add(geometry);
  const auto view = open(ino, geometry, "cut,0,0,1,1,0,0,0,1,0,1100,700.raw");
  ASSERT_TRUE(view.ok());
  const ConstBytes plane = ConstBytes(volume_.bytes(ino)).subspan(std::size_t{700} * 1100, std::size_t{700} * 1100);
  EXPECT_TRUE(bytes_of(**view) == ByteVector(plane.begin(), plane.end()));
}

TEST_F(CutViewTest, ACutOutsideOfTheVolumeIsZero) {
  const Geometry geometry = make("zyx", {4, 5, 6}, 2, ElementType::kF32);
  const auto view = open(add(geometry), geometry, "cut,-5,0,0,1,0,0,0,1,0,3,2.raw");
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(bytes_of(**view), ByteVector(3 * 2 * 2 * 4));
}

TEST_F(CutViewTest, ACutOverALimitIsTooBig) {
  const Geometry geometry = make("zyx", {4, 5, 6}, 1, ElementType::kU8);
  const volume::Ino ino = add(geometry);
  EXPECT_EQ(open(ino, geometry, "cut,0,0,0,1,0,0,0,1,0,16384,16385.raw").error().code, Errc::kTooBig);
  pool_ = pool({.window_bytes = 100});
  EXPECT_EQ(open(ino, geometry, "cut,0,0,0,1,0,0,0,1,0,101,1.raw").error().code, Errc::kTooBig);
  EXPECT_TRUE(open(ino, geometry, "cut,0,0,0,1,0,0,0,1,0,100,1.raw").ok());
}

TEST_F(CutViewTest, ACutCanBeStopped) {
  const Geometry geometry = make("zyx", {4, 5, 6}, 1, ElementType::kU8);
  EXPECT_EQ(open(add(geometry), geometry, "cut,0,0,0,1,0,0,0,1,0,3,2.raw", [] { return true; }).error().code,
            Errc::kCancelled);
}

TEST_F(CutViewTest, AnImageThatHasShrunkHasNoCutInItsOldSlabs) {
  const Geometry geometry = make("tzyx", {4, 5, 6, 7}, 1, ElementType::kU8);
  const auto name = parse_window_name(geometry, "cut,0,0,0,1,0,0,0,1,0,3,2,t3.raw");
  Geometry shorter = geometry;
  shorter.shape[0] = 3;
  EXPECT_EQ(view_window(shorter, *name).error().code, Errc::kOutOfRange);
}

}  // namespace
}  // namespace mdfs::views
