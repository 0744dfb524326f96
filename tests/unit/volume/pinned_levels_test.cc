// Windows of levels that are read in parts: all parts show one state of the image, whatever writers do meanwhile.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "fixture.h"
#include "geometry/level.h"

namespace mdfs::volume {
namespace {

using geometry::Geometry;
using geometry::Reduction;

constexpr unsigned kAttempts = 1000;

class PinnedLevelsTest : public VolumeTest {
 protected:
  PinnedLevelsTest() : VolumeTest(256u << 20) {
    geometry_.rank = 2;
    geometry_.shape = {512, 512};
    geometry_.extent = {64, 64};
    geometry_.axes = "yx";
    geometry_.codec = geometry::Codec::kZstd;
    ino_ = make_file("i");
    ImageOptions options;
    options.geometry = geometry_;
    EXPECT_OK(volume().make_image(ino_, options));
    EXPECT_OK(volume().set_levels(ino_, 3, Reduction::kMean));
  }
  void fill(std::byte value) {
    EXPECT_OK(volume().write_window(ino_, geometry::whole(geometry_), [&](std::uint64_t, MutableBytes into) -> Status {
      std::fill(into.begin(), into.end(), value);
      return {};
    }));
  }
  geometry::Window whole(unsigned level) const { return geometry::whole(geometry::level_geometry(geometry_, level)); }
  std::uint64_t bytes(unsigned level) const { return geometry::level_geometry(geometry_, level).size_bytes(); }

  Geometry geometry_;
  Ino ino_ = 0;
};

TEST_F(PinnedLevelsTest, LaterWritesAndBuildsDoNotChangeAPinnedWindow) {
  fill(std::byte{1});
  for (unsigned level = 1; level <= 3; ++level) {
    fill(std::byte{1});
    const auto pinned = volume().pin_level(ino_, level, whole(level), kAttempts, {});
    ASSERT_OK(pinned);
    ASSERT_TRUE(*pinned);
    ByteVector half(bytes(level) / 2);
    ASSERT_OK((*pinned)->read(0, half, {}));
    EXPECT_EQ(half, ByteVector(half.size(), std::byte{1})) << level;
    for (unsigned value = 2; value < 5; ++value) {
      fill(static_cast<std::byte>(value));
      ByteVector now(bytes(level));
      ASSERT_TRUE(*read_level(volume(), ino_, level, whole(level), now));
      EXPECT_EQ(now, ByteVector(now.size(), static_cast<std::byte>(value))) << level;
    }
    ASSERT_OK((*pinned)->read(half.size(), half, {}));
    EXPECT_EQ(half, ByteVector(half.size(), std::byte{1})) << level;
  }
}

TEST_F(PinnedLevelsTest, AHoleOfAPinnedWindowStaysAHole) {
  const auto pinned = volume().pin_level(ino_, 2, whole(2), kAttempts, {});
  ASSERT_OK(pinned);
  ASSERT_TRUE(*pinned);
  fill(std::byte{9});
  ByteVector now(bytes(2));
  ASSERT_TRUE(*read_level(volume(), ino_, 2, whole(2), now));
  EXPECT_EQ(now, ByteVector(now.size(), std::byte{9}));
  ASSERT_OK((*pinned)->read(0, now, {}));
  EXPECT_EQ(now, ByteVector(now.size()));
}

TEST_F(PinnedLevelsTest, APinnedWindowOfALevelThatIsTakenAwayCanBeReadAndLeavesNoBlocks) {
  fill(std::byte{1});
  auto free_deleted = [&, number = 0]() mutable {  // by changes of a directory: each frees some
    for (int i = 0; i < 4; ++i) {
      make_file("tick" + std::to_string(number++));
      EXPECT_OK(volume().sync());
    }
  };
  std::uint64_t held = 0;
  {
    const auto pinned = volume().pin_level(ino_, 1, whole(1), kAttempts, {});
    ASSERT_OK(pinned);
    ASSERT_TRUE(*pinned);
    ASSERT_OK(volume().set_levels(ino_, 0, Reduction::kMean));
    const auto again = volume().pin_level(ino_, 1, whole(1), kAttempts, {});
    ASSERT_OK(again);
    EXPECT_FALSE(*again);
    ByteVector read(bytes(1));
    const Status status = (*pinned)->read(0, read, {});
    if (status.ok()) {
      EXPECT_EQ(read, ByteVector(read.size(), std::byte{1}));
    } else {
      EXPECT_ERROR(Errc::kStaleDisk, status);
    }
    free_deleted();
    held = volume().space().free_blocks;
  }
  free_deleted();
  EXPECT_GE(volume().space().free_blocks, held + 16);  // the extents of level 1
}

TEST_F(PinnedLevelsTest, PartsThatAreReadBesideWritersAndBuildersShowOneState) {
  fill(std::byte{1});
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (unsigned value = 2; value <= 60; ++value) fill(static_cast<std::byte>(value));
    done = true;
  });
  std::vector<std::thread> readers;
  std::atomic<unsigned> whole_windows{0};
  for (unsigned level = 1; level <= 3; ++level)
    readers.emplace_back([&, level] {
      while (!done) {
        const auto pinned = volume().pin_level(ino_, level, whole(level), kAttempts, {});
        EXPECT_OK(pinned);
        if (!pinned.ok() || !*pinned) continue;
        ByteVector found(bytes(level));
        Status status;
        const std::size_t part = found.size() / 8;
        for (std::size_t at = 0; status.ok() && at < found.size(); at += part)
          status = (*pinned)->read(at, MutableBytes(found).subspan(at, part), {});
        if (!status.ok()) {
          EXPECT_ERROR(Errc::kStaleDisk, status);
          continue;
        }
        ++whole_windows;
        EXPECT_EQ(std::count(found.begin(), found.end(), found[0]), std::ptrdiff_t(found.size())) << level;
      }
    });
  writer.join();
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT(whole_windows, 0u);
}

}  // namespace
}  // namespace mdfs::volume
