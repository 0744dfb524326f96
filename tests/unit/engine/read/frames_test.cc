// Frames of extents as they are stored: what they are, when there is none, and that they do not change.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "codec/codec.h"
#include "engine_fixture.h"

namespace mdfs::engine::testing {
namespace {

using geometry::Codec;
using geometry::Coord;

class FramesTest : public ::testing::Test {
 protected:
  static Setting setting_of(Codec codec, bool on_disks) {
    Setting setting;
    setting.geometry = image_of(2, {500, 700}, {64, 96}, codec);
    setting.cache_bytes = 1u << 20;
    setting.on_disks = on_disks;
    return setting;
  }
  static constexpr std::size_t kExtentBytes = 64 * 96;

  static std::shared_ptr<StoredFrame> find(Bench& bench, const Coord& extent) {
    return bench.engine().stored_frame(bench.object(), extent, {}).value();
  }
  static Status read(Bench& bench, StoredFrame& frame, ByteVector& into) {
    into.resize(bench.engine().size_bytes(frame));
    // In pieces, as the kernel does.
    for (std::size_t at = 0; at < into.size(); at += 1000)
      MDFS_TRY(bench.engine().read_frame(
          frame, at, MutableBytes(into).subspan(at, std::min<std::size_t>(1000, into.size() - at)), {}));
    return {};
  }
  static ByteVector decoded(const ByteVector& frame) {
    ByteVector bytes(kExtentBytes);
    EXPECT_TRUE(codec::decode(Codec::kZstd, frame, bytes).ok());
    return bytes;
  }
  // The extent of a plain array of 500 x 700, padded with zeros.
  static ByteVector extent_of(const ByteVector& image, const Coord& extent) {
    ByteVector bytes(kExtentBytes);
    for (std::size_t y = 0; y < 64 && extent[0] * 64 + y < 500; ++y)
      for (std::size_t x = 0; x < 96 && extent[1] * 96 + x < 700; ++x)
        bytes[y * 96 + x] = image[(extent[0] * 64 + y) * 700 + extent[1] * 96 + x];
    return bytes;
  }
  std::mt19937_64 random_{7};
};

TEST_F(FramesTest, EachStoredExtentIsOneFrameOfAllItsSamples) {
  Bench bench(setting_of(Codec::kZstd, true));
  const ByteVector image = noise(random_, 500 * 700, true);
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, image).ok());
  ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  for (Coord extent{}; extent[0] < 8; ++extent[0])
    for (extent[1] = 0; extent[1] < 8; ++extent[1]) {
      const auto frame = find(bench, extent);
      ASSERT_NE(frame, nullptr);
      ByteVector stored;
      ASSERT_TRUE(read(bench, *frame, stored).ok());
      EXPECT_EQ(decoded(stored), extent_of(image, extent));
    }
}

TEST_F(FramesTest, ADirtyExtentAHoleAndARawExtentHaveNone) {
  Bench raw(setting_of(Codec::kRaw, false));
  ASSERT_TRUE(raw.engine().write(raw.object(), 0, noise(random_, 500 * 700)).ok());
  ASSERT_TRUE(raw.engine().write_back(raw.object()).ok());
  EXPECT_EQ(find(raw, {0, 0}), nullptr);

  Bench bench(setting_of(Codec::kZstd, false));
  EXPECT_EQ(find(bench, {0, 0}), nullptr);
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, noise(random_, 100 * 700)).ok());
  EXPECT_EQ(find(bench, {0, 0}), nullptr);
  ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  EXPECT_NE(find(bench, {0, 0}), nullptr);
  EXPECT_EQ(find(bench, {3, 0}), nullptr);
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, noise(random_, 5)).ok());
  EXPECT_EQ(find(bench, {0, 0}), nullptr);
  EXPECT_NE(find(bench, {0, 1}), nullptr);
  ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  ASSERT_TRUE(bench.engine().punch(bench.object(), 0, 500 * 700).ok());
  EXPECT_EQ(find(bench, {0, 1}), nullptr);
}

// The blocks of the frame leave the tree with the first write, and would be allocated again by a later one.
TEST_F(FramesTest, AFrameIsOfOneVersionWhateverIsWrittenAndCommitted) {
  Bench bench(setting_of(Codec::kZstd, true));
  const ByteVector image = noise(random_, 500 * 700);
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, image).ok());
  ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  ASSERT_TRUE(bench.any_store().commit().ok());
  const auto frame = find(bench, {2, 3});
  for (unsigned round = 0; round < 6; ++round) {
    ASSERT_TRUE(bench.engine().write(bench.object(), 0, noise(random_, 500 * 700)).ok());
    ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
    for (unsigned i = 0; i < 2; ++i) ASSERT_TRUE(bench.any_store().commit_freed().ok());
    ByteVector stored;
    ASSERT_TRUE(read(bench, *frame, stored).ok());
    ASSERT_EQ(decoded(stored), extent_of(image, {2, 3}));
    ASSERT_NE(find(bench, {2, 3}), nullptr);
  }
}

TEST_F(FramesTest, DamageIsRefusedAndAFrameInTheCacheIsNotReadAgain) {
  Bench bench(setting_of(Codec::kZstd, false));
  const ByteVector image = noise(random_, 500 * 700);
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, image).ok());
  ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  const auto places = bench.layout().value();
  const auto flip = [&](const layout::ExtentPlace& place) {
    std::byte byte{};
    const std::uint64_t at = place.block * 4096 + place.stored_bytes / 2;
    bench.store().memory_disk(place.disk).peek(at, {&byte, 1});
    byte ^= std::byte{4};
    bench.store().memory_disk(place.disk).poke(at, {&byte, 1});
  };
  ByteVector stored;
  ASSERT_TRUE(read(bench, *find(bench, {0, 0}), stored).ok());
  flip(places[0]);
  flip(places[1]);
  ASSERT_TRUE(read(bench, *find(bench, {0, 0}), stored).ok());
  EXPECT_EQ(decoded(stored), extent_of(image, {0, 0}));
  const Status damaged = read(bench, *find(bench, {0, 1}), stored);
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().code, Errc::kCorrupt);
  flip(places[1]);
  ASSERT_TRUE(read(bench, *find(bench, {0, 1}), stored).ok());
  EXPECT_EQ(decoded(stored), extent_of(image, {0, 1}));
}

TEST_F(FramesTest, AnOfferedFrameIsStoredIfTheExtentBecomesItsSamples) {
  Bench bench(setting_of(Codec::kZstd, true));
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, noise(random_, 500 * 700)).ok());
  ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  const ByteVector image = noise(random_, 500 * 700, true);
  const auto stored_after = [&](const Coord& extent, const ByteVector& samples) {
    ByteVector frame(codec::compress_bound(Codec::kZstd, samples.size()));
    frame.resize(*codec::encode(Codec::kZstd, -20, samples, frame));
    geometry::Window window;
    window.start = {extent[0] * 64, extent[1] * 96, 0};
    window.length = {std::min<std::uint64_t>(64, 500 - window.start[0]),
                     std::min<std::uint64_t>(96, 700 - window.start[1]), 0};
    const ByteVector inside = array_get(bench.geometry_now(), image, window);
    WindowSource source([&](std::uint64_t offset, MutableBytes into) -> Status {
      std::copy_n(inside.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
      return {};
    });
    source.offer({frame, samples});
    EXPECT_TRUE(bench.engine().write_window(bench.object(), window, source).ok());
    ByteVector stored;
    EXPECT_TRUE(read(bench, *find(bench, extent), stored).ok());
    EXPECT_EQ(decoded(stored), extent_of(image, extent));
    EXPECT_EQ(bench.read_window(window), inside);
    return stored == frame;
  };
  for (const Coord& extent : {Coord{1, 2}, Coord{7, 3}, Coord{2, 7}, Coord{7, 7}}) {
    EXPECT_TRUE(stored_after(extent, extent_of(image, extent)));
    ByteVector other = extent_of(image, extent);
    other.back() ^= std::byte{1};  // at an edge: in the padding
    EXPECT_FALSE(stored_after(extent, other));
    EXPECT_TRUE(stored_after(extent, extent_of(image, extent)));
  }
  ASSERT_TRUE(bench.reopen().ok());
  for (const Coord& extent : {Coord{1, 2}, Coord{7, 3}, Coord{2, 7}, Coord{7, 7}}) {
    ByteVector stored;
    ASSERT_TRUE(read(bench, *find(bench, extent), stored).ok());
    EXPECT_EQ(decoded(stored), extent_of(image, extent));
  }
}

}  // namespace
}  // namespace mdfs::engine::testing
