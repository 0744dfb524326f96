// The order of changes: a new size, or a window, is not on the disks without what had been written before it.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "device/testing/faulty_disk.h"
#include "engine/open_object.h"
#include "engine_fixture.h"

namespace mdfs::engine::testing {
namespace {

using device::Fault;
using device::FaultKind;
using device::FaultyDisk;
using device::Op;
using geometry::Codec;

// On one disk that fails as told.
class OrderTest : public ::testing::TestWithParam<Kind> {
 protected:
  OrderTest() : bench_(setting()), disk_(bench_.store().memory_disk(0), {}) { bench_.store().put_in_front(0, disk_); }
  ~OrderTest() override {
    disk_.release();
    bench_.stop_engine();  // before the disk in front of the store's own
  }

  static Setting setting() {
    Setting setting{GetParam().geometry};
    setting.disks = 1;
    setting.cache_bytes = 16u << 20;  // nothing is written back by itself
    return setting;
  }

  Status write(std::uint64_t offset, std::size_t length) {
    const ByteVector bytes = noise(random_, length);
    if (array_.size() < offset + length) array_.resize(offset + length);
    std::copy(bytes.begin(), bytes.end(), array_.begin() + static_cast<std::ptrdiff_t>(offset));
    return bench_.engine().write(bench_.object(), offset, bytes);
  }
  Status punch(std::uint64_t offset, std::uint64_t length) {
    const auto begin = array_.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(offset, array_.size()));
    const auto end =
        array_.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(offset + length, array_.size()));
    std::fill(begin, end, std::byte{0});
    return bench_.engine().punch(bench_.object(), offset, length);
  }
  Status truncate(std::uint64_t size) { return bench_.engine().truncate(bench_.object(), size); }
  void write_window() {
    const geometry::Geometry geometry = bench_.geometry_now();
    const geometry::Window window = random_window(random_, geometry);
    const ByteVector bytes = noise(random_, geometry::window_bytes(geometry, window));
    ASSERT_TRUE(bench_.write_window(window, bytes).ok());
    array_put(geometry, array_, window, bytes);
    if (array_.size() < bench_.size()) array_.resize(bench_.size());
  }
  // 300 000 bytes, published.
  void fill() {
    ASSERT_TRUE(write(0, 300'000).ok());
    ASSERT_TRUE(bench_.engine().write_back(bench_.object()).ok());
  }
  // Bytes written, appended and punched; dirty as far as that goes.
  void change_some() {
    for (auto left = 1 + random_() % 4; left > 0; --left) {
      const std::uint64_t offset = random_() % 4 == 0 ? array_.size() : random_() % array_.size();
      if (random_() % 4 == 0)
        ASSERT_TRUE(punch(offset, 1 + random_() % 20'000).ok());
      else
        ASSERT_TRUE(write(offset, 1 + random_() % 20'000).ok());
    }
  }
  // What is dirty is lost.
  void crash() {
    bench_.stop_engine();
    bench_.start_engine();
    bench_.open_object();
  }

  Bench bench_;
  FaultyDisk disk_;
  std::mt19937_64 random_{7};
  ByteVector array_;
};

TEST_P(OrderTest, ASizeComesWithWhatHadBeenWrittenBefore) {
  fill();
  for (unsigned turn = 0; turn < 30; ++turn) {
    change_some();
    const std::uint64_t size = random_() % 3 == 0 ? array_.size() + 1 + random_() % 50'000 : random_() % array_.size();
    ASSERT_TRUE(truncate(size).ok());
    array_.resize(size);
    ASSERT_EQ(bench_.read_all(), array_) << turn;
    crash();
    ASSERT_EQ(bench_.size(), size) << turn;
    ASSERT_EQ(bench_.read_all(), array_) << turn;
    ASSERT_TRUE(write(0, 1).ok());
    if (array_.size() < 200'000) {
      ASSERT_TRUE(write(random_() % (array_.size() + 1), 200'000).ok());
    }
    ASSERT_TRUE(bench_.engine().write_back(bench_.object()).ok());
  }
}

// What is punched or written behind a size that has been extended is not published before it.
TEST_P(OrderTest, WhatFollowsASizeDoesNotComeWithoutIt) {
  for (unsigned turn = 0; turn < 20; ++turn) {
    fill();
    ASSERT_TRUE(write(random_() % 300'000, 10).ok());
    const std::uint64_t size = array_.size() + 1 + random_() % 300'000;
    ASSERT_TRUE(truncate(size).ok());
    array_.resize(size);
    ASSERT_TRUE(punch(random_() % 100'000, 150'000).ok());
    crash();
    ASSERT_EQ(bench_.size(), size) << turn;
    ASSERT_TRUE(truncate(0).ok());
    array_.clear();
  }
}

class WindowOrderTest : public OrderTest {};  // of images

TEST_P(WindowOrderTest, AWindowComesWithWhatHadBeenWrittenBefore) {
  fill();
  for (unsigned turn = 0; turn < 30; ++turn) {
    change_some();
    write_window();
    crash();
    ASSERT_EQ(bench_.read_all(), array_) << turn;
  }
}

TEST_P(OrderTest, WhereTheFirstBytesCannotBeWrittenTheSizeStaysAndNothingIsLost) {
  fill();
  const ByteVector stored = array_;
  ASSERT_TRUE(write(10, 1000).ok());
  ASSERT_TRUE(write(290'000, 20'000).ok());
  for (const std::uint64_t size : {std::uint64_t{250'000}, std::uint64_t{500'000}}) {
    disk_.add({FaultKind::kError, Op::kWrite, 0, UINT64_MAX, 0, Fault::kSticky});
    const Status cut = truncate(size);
    ASSERT_FALSE(cut.ok());
    EXPECT_EQ(cut.error().code, Errc::kIo);
    EXPECT_EQ(bench_.size(), array_.size());
    EXPECT_EQ(bench_.read_all(), array_);
    disk_.work_again();
  }
  EXPECT_TRUE(bench_.engine().write_back(bench_.object()).ok());
  EXPECT_TRUE(truncate(250'000).ok());
  array_.resize(250'000);
  crash();
  EXPECT_EQ(bench_.read_all(), array_);
}

// Whoever makes room gets on.
TEST_P(OrderTest, WhereThereIsNoRoomForTheFirstBytesTheContentIsShortenedAllTheSame) {
  fill();
  ASSERT_TRUE(write(10, 1000).ok());
  const std::uint64_t row = bench_.object().grid_row_bytes();
  const std::uint64_t size = 250'000 / row * row;  // nothing is cut apart, which needs room
  ASSERT_GT(size, 0u);
  const std::uint64_t used = bench_.store().used_blocks();
  bench_.store().refuse_blocks(true);
  ASSERT_TRUE(truncate(size).ok());
  array_.resize(size);
  EXPECT_LT(bench_.store().used_blocks(), used);
  EXPECT_EQ(bench_.inode().size_bytes, size);
  EXPECT_EQ(bench_.read_all(), array_);
  EXPECT_FALSE(bench_.engine().write_back(bench_.object()).ok());  // it was not forgotten
  bench_.store().refuse_blocks(false);
  ASSERT_TRUE(bench_.engine().write_back(bench_.object()).ok());
  crash();
  EXPECT_EQ(bench_.read_all(), array_);
}

TEST_P(OrderTest, NothingIsWrittenWhereNothingStays) {
  fill();
  ASSERT_TRUE(truncate(bench_.object().grid_row_bytes() * 2).ok());  // clean, and nothing is cut apart
  ASSERT_TRUE(write(0, 400'000).ok());
  disk_.add({FaultKind::kError, Op::kWrite, 0, UINT64_MAX, 0, Fault::kSticky});
  const unsigned updates = bench_.inode().updates;
  EXPECT_TRUE(truncate(0).ok());
  EXPECT_TRUE(disk_.injections().empty());
  EXPECT_EQ(bench_.inode().updates, updates + 1);
  EXPECT_FALSE(bench_.engine().is_dirty(bench_.object()));
}

// The size is not published before what somebody writes while the first bytes are on their way.
TEST_P(OrderTest, WhatIsWrittenMeanwhileComesAsWell) {
  for (const std::uint64_t size : {std::uint64_t{250'000}, std::uint64_t{500'000}}) {
    fill();
    ASSERT_TRUE(write(10, 1000).ok());
    disk_.add({FaultKind::kStuck, Op::kWrite, 0, UINT64_MAX, 0, 1});
    const std::size_t before = disk_.injections().size();
    Status cut;
    std::thread other([&] { cut = truncate(size); });
    while (disk_.injections().size() == before) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(write(500, 3000).ok());
    disk_.release();
    other.join();
    ASSERT_TRUE(cut.ok());
    array_.resize(size);
    crash();
    EXPECT_EQ(bench_.read_all(), array_);
    disk_.work_again();
    ASSERT_TRUE(truncate(0).ok());
    array_.clear();
  }
}

const auto kImages = ::testing::Values(Kind{"raw", image_of(2, {0, 600}, {64, 96}, Codec::kRaw)},
                                       Kind{"zstd", image_of(2, {0, 600}, {64, 96}, Codec::kZstd)},
                                       Kind{"frames", image_of(3, {0, 64, 64}, {8, 32, 32}, Codec::kRaw)});

INSTANTIATE_TEST_SUITE_P(File, OrderTest, ::testing::Values(Kind{"file", std::nullopt}), kNameOf);
INSTANTIATE_TEST_SUITE_P(Images, OrderTest, kImages, kNameOf);
INSTANTIATE_TEST_SUITE_P(Images, WindowOrderTest, kImages, kNameOf);

}  // namespace
}  // namespace mdfs::engine::testing
