// Levels that are taken away while they are read, listed or planned.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>

#include "fixture.h"
#include "geometry/level.h"

namespace mdfs::volume {
namespace {

using geometry::Geometry;
using geometry::Reduction;

class LevelsTakenAwayTest : public VolumeTest {
 protected:
  LevelsTakenAwayTest() : VolumeTest(256u << 20) {}
  std::pair<Ino, Geometry> make_image(geometry::Coord shape, geometry::Coord extent, unsigned levels) {
    ImageOptions options;
    options.geometry.rank = 2;
    options.geometry.shape = shape;
    options.geometry.extent = extent;
    options.geometry.axes = "yx";
    const Ino ino = make_file("i");
    EXPECT_OK(volume().make_image(ino, options));
    EXPECT_OK(volume().set_levels(ino, levels, Reduction::kMean));
    return {ino, options.geometry};
  }
};

TEST_F(LevelsTakenAwayTest, AReaderOfALevelThatIsTakenAwayMeanwhileIsToldThatItIsNotStored) {
  const auto [ino, geometry] = make_image({4096, 2048}, {256, 256}, 1);
  const geometry::Window window = geometry::whole(geometry::level_geometry(geometry, 1));
  unsigned pieces = 0;  // of 1 MiB
  const auto take_away = [&](std::uint64_t, ConstBytes) -> Status {
    if (++pieces == 1) {
      EXPECT_OK(volume().set_levels(ino, 0, Reduction::kMean));
    }
    return {};
  };
  const auto read = volume().read_level(ino, 1, window, 0, 2u << 20, take_away, 3, {});
  ASSERT_OK(read);
  EXPECT_FALSE(*read);
  EXPECT_EQ(pieces, 1u);
}

TEST_F(LevelsTakenAwayTest, LevelsCanBeReadAndListedWhileTheirNumberChanges) {
  const auto [made, geometry] = make_image({64, 64}, {16, 16}, 3);
  const Ino ino = made;
  EXPECT_OK(volume().write(ino, 0, ByteVector(4096, std::byte{7}), false));
  std::atomic<bool> done{false};
  std::thread changer([&] {
    for (unsigned i = 0; i < 300; ++i) EXPECT_OK(volume().set_levels(ino, i % 4, Reduction::kMean));
    done = true;
  });
  const geometry::Window window = geometry::whole(geometry::level_geometry(geometry, 3));
  const auto none = [](std::uint64_t, ConstBytes) -> Status { return {}; };
  while (!done) {
    EXPECT_OK(volume().read_level(ino, 3, window, 0, geometry::window_bytes(geometry, window), none, 3, {}));
    EXPECT_OK(volume().levels_info(ino, {}));
    const auto plan = volume().plan_level(ino, 3, window, {});
    if (!plan.ok()) {
      EXPECT_EQ(plan.error().code, Errc::kOutOfRange) << plan.error().message();
    }
  }
  changer.join();
}

}  // namespace
}  // namespace mdfs::volume
