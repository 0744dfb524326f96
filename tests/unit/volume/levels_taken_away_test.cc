// Levels that are taken away while they are read, listed or planned.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "fixture.h"
#include "geometry/level.h"
#include "volume/level_guard.h"

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

TEST(LevelGuardTest, AChangeOfAllSamplesConcernsWatchesOfEveryRank) {
  geometry::SampleBox all;
  all.last.fill(UINT64_MAX);
  for (unsigned rank = 1; rank <= geometry::kMaxRank; ++rank) {
    LevelGuard guard;
    geometry::SampleBox box;
    for (unsigned axis = 0; axis < rank; ++axis) box.last[axis] = 10;
    const LevelGuard::Watch watch(guard, rank, box, {});
    EXPECT_FALSE(watch.is_stale());
    {
      const LevelGuard::Write writing(guard, geometry::kMaxRank, all);
      EXPECT_TRUE(watch.is_stale()) << "rank " << rank;
    }
  }
}

TEST_F(LevelsTakenAwayTest, WindowsOfLevelsWhoseReductionChangesAreReductions) {
  constexpr std::byte kValue{111};
  const auto [made, geometry] = make_image({350, 510}, {32, 32}, 3);
  const Ino ino = made;
  EXPECT_OK(volume().write(ino, 0, ByteVector(350 * 510, kValue), false));
  std::atomic<bool> done{false};
  std::atomic<unsigned> wrong{0}, right{0};
  const auto read = [&, shape = geometry](unsigned first) {
    for (unsigned number = first; !done; ++number) {
      const unsigned level = 1 + number % 3;
      const geometry::Window window = geometry::whole(geometry::level_geometry(shape, level));
      ByteVector bytes(geometry::window_bytes(shape, window));
      if (number % 2 == 0) {
        const auto take = [&](std::uint64_t offset, ConstBytes from) -> Status {
          std::copy(from.begin(), from.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
          return {};
        };
        const auto found = volume().read_level(ino, level, window, 0, bytes.size(), take, 100, {});
        EXPECT_OK(found);
        if (!found.ok() || !*found) continue;
      } else {
        const auto pinned = volume().pin_level(ino, level, window, 100, {});
        EXPECT_OK(pinned);
        if (!pinned.ok() || !*pinned) continue;
        const Status status = (*pinned)->read(0, bytes, {});
        if (!status.ok()) {
          EXPECT_EQ(status.error().code, Errc::kStaleDisk) << status.error().message();
          continue;
        }
      }
      const bool good = std::count(bytes.begin(), bytes.end(), kValue) == std::ptrdiff_t(bytes.size());
      ++(good ? right : wrong);
    }
  };
  std::vector<std::thread> readers;
  for (unsigned i = 0; i < 4; ++i) readers.emplace_back(read, i);
  for (unsigned i = 0; i < 200; ++i) {
    EXPECT_OK(volume().set_levels(ino, 3, i % 2 == 0 ? Reduction::kMax : Reduction::kMean));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that some are built
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(right, 0u);
}

}  // namespace
}  // namespace mdfs::volume
