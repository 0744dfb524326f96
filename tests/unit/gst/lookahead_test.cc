// Frames that are read ahead, by a reader whose reads end when a test says.
// SPDX-License-Identifier: Apache-2.0
#include "lookahead.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace mdfs::gst {
namespace {

// Reads wait while the gate is closed.
class Reader {
 public:
  std::int64_t read(std::int64_t frame) {
    std::unique_lock lock(mutex_);
    begun_.push_back(frame);
    most_ = std::max(most_, ++under_way_);
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    --under_way_;
    return frame * 10;
  }
  void open(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  // The frames of which the reads have begun, when they are so many.
  std::vector<std::int64_t> wait_for(std::size_t reads) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_.size() >= reads; });
    return begun_;
  }
  std::set<std::int64_t> begun() {
    const std::lock_guard lock(mutex_);
    return {begun_.begin(), begun_.end()};
  }
  int most() {
    const std::lock_guard lock(mutex_);
    return most_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::int64_t> begun_;
  bool open_ = true;
  int under_way_ = 0, most_ = 0;
};

struct LookaheadTest : testing::Test {
  Reader reader;
  Lookahead<std::int64_t>::Read read = [this](std::int64_t frame) { return reader.read(frame); };
};

TEST_F(LookaheadTest, EachFrameComesInItsOrder) {
  for (const std::size_t threads : {1u, 4u}) {
    for (const std::size_t depth : {1u, 3u, 100u}) {
      Lookahead<std::int64_t> ahead(read, depth, threads);
      ahead.begin({0, 49, 1});
      for (std::int64_t frame = 0; frame < 50; ++frame) EXPECT_EQ(ahead.take(frame), frame * 10);
      ahead.begin({49, 0, -1});
      for (std::int64_t frame = 49; frame >= 0; --frame) EXPECT_EQ(ahead.take(frame), frame * 10);
    }
  }
}

TEST_F(LookaheadTest, NoMoreFramesThanTheDepthAreRead) {
  {
    Lookahead<std::int64_t> ahead(read, 5, 2);
    ahead.begin({0, 99, 1});
    reader.wait_for(5);
    EXPECT_EQ(ahead.take(0), 0);
    EXPECT_EQ(ahead.take(1), 10);
    reader.wait_for(7);
  }
  // The two that were taken, and five ahead.
  EXPECT_EQ(reader.begun(), (std::set<std::int64_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_LE(reader.most(), 2);
}

TEST_F(LookaheadTest, NoFrameBeyondTheLastIsRead) {
  {
    Lookahead<std::int64_t> ahead(read, 8, 4);
    ahead.begin({7, 9, 1});
    EXPECT_EQ(ahead.take(7), 70);
    EXPECT_EQ(ahead.take(8), 80);
    EXPECT_EQ(ahead.take(9), 90);
  }
  EXPECT_EQ(reader.begun(), (std::set<std::int64_t>{7, 8, 9}));
}

TEST_F(LookaheadTest, SkippedFramesAreNotReadUnlessTheirReadHasBegun) {
  Lookahead<std::int64_t> ahead(read, 4, 2);
  reader.open(false);
  ahead.begin({0, 99, 1});
  reader.wait_for(2);
  std::thread other([&] { EXPECT_EQ(ahead.take(50), 500); });
  reader.open(true);
  other.join();
  EXPECT_EQ(ahead.take(51), 510);
  const auto begun = reader.begun();
  EXPECT_EQ(begun.count(4), 0u) << "at most four were ahead of the first";
  EXPECT_EQ(begun.count(49), 0u);
}

TEST_F(LookaheadTest, AnotherOrderDropsTheFramesOfTheOneBefore) {
  Lookahead<std::int64_t> ahead(read, 4, 2);
  reader.open(false);
  ahead.begin({0, 99, 1});
  reader.wait_for(2);
  ahead.begin({30, 0, -1});
  reader.open(true);
  EXPECT_EQ(ahead.take(30), 300);
  EXPECT_EQ(ahead.take(29), 290);
}

TEST_F(LookaheadTest, AnInterruptedCallReturnsNothingAndTheNextOneTheFrame) {
  Lookahead<std::int64_t> ahead(read, 4, 2);
  reader.open(false);
  ahead.begin({0, 99, 1});
  reader.wait_for(2);
  std::thread other([&] { EXPECT_EQ(ahead.take(0), std::nullopt); });
  ahead.interrupt(true);
  other.join();
  EXPECT_EQ(ahead.take(0), std::nullopt);
  ahead.interrupt(false);
  reader.open(true);
  EXPECT_EQ(ahead.take(0), 0);
}

}  // namespace
}  // namespace mdfs::gst
