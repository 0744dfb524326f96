// Whoever appends and syncs in turns finds most of it written when the sync comes.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "engine/sync_rhythm.h"
#include "engine_fixture.h"

namespace mdfs::engine::testing {
namespace {

using geometry::Codec;

TEST(SyncRhythmTest, WhoHasAppendedAndSyncedIsExpectedToSyncWhatFollows) {
  SyncRhythm rhythm(1000);
  EXPECT_FALSE(rhythm.expects_sync(1001, 500));
  rhythm.note_sync(1100);
  EXPECT_FALSE(rhythm.expects_sync(1100, 500));  // nothing follows
  EXPECT_TRUE(rhythm.expects_sync(1101, 500));
  EXPECT_TRUE(rhythm.expects_sync(1200, 500));
  EXPECT_FALSE(rhythm.expects_sync(1201, 500));  // goes on without
}

TEST(SyncRhythmTest, ASyncOfMuchOrOfLessSaysNothingOfTheNext) {
  SyncRhythm rhythm(0);
  rhythm.note_sync(501);
  EXPECT_FALSE(rhythm.expects_sync(502, 500));
  EXPECT_TRUE(rhythm.expects_sync(502, 501));
  rhythm.note_sync(300);
  EXPECT_FALSE(rhythm.expects_sync(301, 500));
}

TEST(SyncRhythmTest, ASyncWithNothingNewIsNoTurn) {
  SyncRhythm rhythm(0);
  rhythm.note_sync(100);
  rhythm.note_sync(100);
  EXPECT_TRUE(rhythm.expects_sync(200, 500));
}

constexpr std::uint64_t kDepth = 16, kSide = 200;  // the last extents of a row and of a column are not full
constexpr std::uint64_t kFrame = kSide * kSide;
constexpr std::uint64_t kExtents = 16;  // under a frame

class EarlyWriteBackTest : public ::testing::TestWithParam<Codec> {
 protected:
  static Setting setting(Codec codec) {
    Setting setting;
    setting.geometry = image_of(3, {0, kSide, kSide}, {kDepth, 64, 64}, codec);
    setting.cache_bytes = 8u << 20;
    setting.early_batch_bytes = kFrame;
    return setting;
  }
  // In pieces of random sizes, or of one.
  void write(std::uint64_t bytes, std::uint64_t most_at_once) {
    while (bytes > 0) {
      const std::uint64_t now = std::min(bytes, 1 + random_() % most_at_once);
      const ByteVector piece = noise(random_, now, true);
      ASSERT_TRUE(bench_.engine().write(bench_.object(), array_.size(), piece).ok());
      array_.insert(array_.end(), piece.begin(), piece.end());
      bytes -= now;
    }
  }
  void sync() { ASSERT_TRUE(bench_.engine().write_back(bench_.object()).ok()); }
  bool becomes_clean() {
    for (int i = 0; i < 500 && bench_.engine().cache_stats().dirty_bytes > 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return bench_.engine().cache_stats().dirty_bytes == 0;
  }
  std::uint64_t parts_in_strips() {
    const auto places = bench_.layout();
    MDFS_CHECK(places.ok());
    return static_cast<std::uint64_t>(
        std::count_if(places->begin(), places->end(), [](const layout::ExtentPlace& place) { return place.in_strip; }));
  }

  std::mt19937_64 random_{11};
  ByteVector array_;
  Bench bench_{setting(GetParam())};
};

TEST_P(EarlyWriteBackTest, AFrameIsWrittenBeforeTheSyncThatIsExpected) {
  write(kFrame, kFrame);
  sync();
  const ByteVector frame = noise(random_, kFrame, true);
  ASSERT_TRUE(bench_.engine().write(bench_.object(), kFrame, frame).ok());
  array_.insert(array_.end(), frame.begin(), frame.end());
  EXPECT_TRUE(becomes_clean());
  EXPECT_EQ(parts_in_strips(), 2 * kExtents);
  EXPECT_EQ(bench_.inode().size_bytes, 2 * kFrame);
  EXPECT_EQ(bench_.read_all(), array_);
  sync();
  EXPECT_EQ(parts_in_strips(), 2 * kExtents);
  ASSERT_TRUE(bench_.reopen().ok());
  EXPECT_EQ(bench_.read_all(), array_);
}

TEST_P(EarlyWriteBackTest, WhoDoesNotSyncKeepsItsExtentsWhole) {
  write(kFrame, kFrame);
  sync();
  write(kDepth * kFrame, kFrame / 3);
  sync();
  // The last frame is alone in its slab.
  EXPECT_EQ(parts_in_strips(), kExtents);
  EXPECT_EQ(bench_.read_all(), array_);
}

TEST_P(EarlyWriteBackTest, WhateverIsAppendedAndSyncedIsReadMeanwhileAndAfterwards) {
  for (std::uint64_t turn = 0; turn < 40; ++turn) {
    write(random_() % 3 == 0 ? random_() % kFrame + 1 : (1 + random_() % 2) * kFrame, kFrame / 2);
    const geometry::Geometry now = bench_.geometry_now();
    const std::uint64_t frames = array_.size() / kFrame;
    const std::uint64_t first = random_() % std::max<std::uint64_t>(frames, 1);
    if (frames > first) {
      const geometry::Window window{
          {first, random_() % 150, random_() % 150}, {1 + random_() % (frames - first), 50, 50}, {}, std::nullopt};
      const ByteVector expected = array_get(now, array_, window);
      ASSERT_EQ(bench_.read_window(window), expected) << "turn " << turn;
    }
    if (random_() % 4 != 0) sync();
    if (random_() % 8 == 0) {
      const std::uint64_t size = array_.size() - random_() % std::min<std::uint64_t>(2 * kFrame, array_.size());
      ASSERT_TRUE(bench_.engine().truncate(bench_.object(), size).ok());
      array_.resize(size);
    }
    const Status reopened = random_() % 8 == 0 ? bench_.reopen() : Status();
    ASSERT_TRUE(reopened.ok());
  }
  EXPECT_EQ(bench_.read_all(), array_);
  ASSERT_TRUE(bench_.reopen().ok());
  EXPECT_EQ(bench_.read_all(), array_);
}

TEST(EarlySizeTest, TheTreeEndsWhereWhatIsWrittenEarlyEnds) {
  constexpr std::uint64_t kRow = 64, kRows = 512, kTall = kRow * kRows;  // of a frame: 8 extents, one below the other
  Setting setting;
  setting.geometry = image_of(3, {0, kRows, kRow}, {kDepth, 64, 64}, Codec::kRaw);
  setting.cache_bytes = 8u << 20;
  setting.early_batch_bytes = kTall / 2;
  Bench bench(setting);
  std::mt19937_64 random(3);
  ByteVector array = noise(random, 2 * kTall);
  const auto append = [&](std::uint64_t begin, std::uint64_t end) {
    return bench.engine().write(bench.object(), begin, ConstBytes(array).subspan(begin, end - begin)).ok();
  };
  ASSERT_TRUE(append(0, kTall) && bench.engine().write_back(bench.object()).ok());
  // The upper half of the frame makes rows of pages; the row that follows, written before, does not.
  ASSERT_TRUE(append(kTall + kTall / 2, kTall + kTall / 2 + kRow));
  ASSERT_TRUE(append(kTall, kTall + kTall / 2));
  const auto parts = [&] { return bench.layout()->size(); };
  for (int i = 0; i < 500 && parts() == 8; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_EQ(parts(), 8u + 4);
  EXPECT_EQ(bench.inode().size_bytes, kTall + kTall / 2);
  ASSERT_TRUE(append(kTall + kTall / 2 + kRow, 2 * kTall) && bench.engine().write_back(bench.object()).ok());
  EXPECT_EQ(bench.inode().size_bytes, 2 * kTall);
  ASSERT_TRUE(bench.reopen().ok());
  EXPECT_EQ(bench.read_all(), array);
}

INSTANTIATE_TEST_SUITE_P(Codecs, EarlyWriteBackTest, ::testing::Values(Codec::kRaw, Codec::kZstd),
                         [](const auto& codec) { return codec.param == Codec::kRaw ? "raw" : "zstd"; });

// A slab of these extents has 8 MiB, a frame 256 KiB.
TEST(AppendedFramesTest, FramesTakeTheMemoryThatTheyFill) {
  constexpr std::uint64_t kLargeSide = 512, kLargeFrame = kLargeSide * kLargeSide, kFrames = 32;
  Setting setting;
  setting.geometry = image_of(3, {0, kLargeSide, kLargeSide}, {kFrames, 64, 64}, Codec::kRaw);
  setting.cache_bytes = 64u << 20;
  Bench bench(setting);
  std::mt19937_64 random(12);
  ByteVector array;
  for (std::uint64_t frame = 1; frame <= kFrames; ++frame) {
    const ByteVector bytes = noise(random, kLargeFrame, true);
    ASSERT_TRUE(bench.engine().write(bench.object(), array.size(), bytes).ok());
    array.insert(array.end(), bytes.begin(), bytes.end());
    if (frame < kFrames / 2) {
      EXPECT_LT(bench.engine().cache_stats().bytes, (frame + 2) * kLargeFrame);
    }
    if (frame % 3 == 0) {
      ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
    }
  }
  EXPECT_EQ(bench.read_all(), array);
  ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  EXPECT_LT(bench.engine().cache_stats().bytes, (kFrames + 4) * kLargeFrame);
  ASSERT_TRUE(bench.reopen().ok());
  EXPECT_EQ(bench.read_all(), array);
}

// Of the 256 rows of an extent in a frame, the image has 100: the others are filled with zeros, and count.
TEST(AppendedFramesTest, TheZerosBesideTheImageCount) {
  constexpr std::uint64_t kRows = 100, kColumns = 512;
  Setting setting;
  setting.geometry = image_of(3, {0, kRows, kColumns}, {32, 256, 64}, Codec::kRaw);
  setting.cache_bytes = 64u << 20;
  Bench bench(setting);
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, ByteVector(kRows * kColumns, std::byte{1})).ok());
  EXPECT_GE(bench.engine().cache_stats().bytes, kColumns * 256);
  EXPECT_LT(bench.engine().cache_stats().bytes, kColumns * 256 * 2);
}

}  // namespace
}  // namespace mdfs::engine::testing
