// Many threads at one object: window writes whole or not at all, and no bytes lost.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "device/testing/faulty_disk.h"
#include "engine/task_pool.h"
#include "engine_fixture.h"

namespace mdfs::engine::testing {
namespace {

using geometry::Codec;
using geometry::Geometry;
using geometry::Window;

class EngineThreadsTest : public ::testing::TestWithParam<Codec> {};

void run_threads(unsigned count, const std::function<void(unsigned)>& work) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

Window window_at(std::uint64_t y, std::uint64_t x, std::uint64_t height, std::uint64_t width) {
  Window window;
  window.start = {y, x, 0};
  window.length = {height, width, 0};
  return window;
}

// A record is in the tree before cached extents are exchanged.
TEST_P(EngineThreadsTest, AnExtentThatIsSaidToBeWrittenIsReadWithItsBytes) {
  Setting setting;
  setting.geometry = image_of(2, {64, 64}, {32, 32}, GetParam());
  Bench bench(setting);
  const Window window = window_at(0, 0, 64, 64);
  const GridBox whole{{0, 0}, {2, 2}};
  for (unsigned round = 1; round <= 300; ++round) {
    const ByteVector bytes(64 * 64, static_cast<std::byte>(round % 255 + 1));
    ASSERT_TRUE(bench.engine().drop_extents(bench.object(), whole, {}).ok());
    ASSERT_EQ(bench.read_window(window), ByteVector(bytes.size()));  // the holes are in the cache
    std::thread writer([&] { EXPECT_TRUE(bench.write_window(window, bytes).ok()); });
    bool written = false;
    while (!written) {
      const auto answer = bench.engine().is_written(bench.object(), {1, 1});
      ASSERT_TRUE(answer.ok());
      written = *answer;
    }
    const ByteVector read = bench.read_window(window);
    writer.join();
    ASSERT_EQ(read, bytes) << round;
  }
}

// As when a volume is unmounted as soon as its last request has ended. ThreadSanitizer is the judge.
TEST(TaskPoolTest, APoolMayEndAsSoonAsTheTasksOfOthersHaveRun) {
  for (unsigned round = 0; round < 200; ++round) {
    std::atomic<bool> has_run = false;
    auto pool = std::make_unique<TaskPool>(2);
    std::thread poster([&] { pool->post([&] { has_run = true; }); });
    while (!has_run) std::this_thread::yield();
    pool->drain();
    pool.reset();
    poster.join();
  }
}

// Not aligned to extents, so that each write changes parts of many.
TEST_P(EngineThreadsTest, EachReadSeesAWindowWriteWholeOrNotAtAll) {
  Setting setting;
  setting.geometry = image_of(2, {500, 600}, {64, 96}, GetParam(), 3);
  setting.cache_bytes = 1u << 20;  // less than the image: the window is loaded again and again
  Bench bench(setting);
  const Window window = window_at(30, 50, 300, 333);
  const std::uint64_t bytes = geometry::window_bytes(*setting.geometry, window);
  std::atomic<bool> done{false};
  std::atomic<unsigned> mixed{0};
  std::atomic<unsigned> reads{0};
  run_threads(6, [&](unsigned i) {
    if (i < 2) {
      for (unsigned round = 0; round < 25; ++round)
        ASSERT_TRUE(bench.write_window(window, ByteVector(bytes, static_cast<std::byte>(round * 2 + i))).ok());
      done = true;
    } else if (i == 2) {  // pushes the window's extents out of the cache
      while (!done) bench.read(0, 500 * 600 * 3);
    } else if (i == 3) {
      while (!done) bench.engine().start_window(bench.object(), window);
    } else {
      while (!done) {
        const ByteVector got = bench.read_window(window);
        if (std::any_of(got.begin(), got.end(), [&](std::byte b) { return b != got[0]; })) ++mixed;
        ++reads;
      }
    }
  });
  EXPECT_EQ(mixed, 0u);
  EXPECT_GT(reads, 0u);
}

// The copying of such planes, one sample out of each row, is shared among threads.
TEST_P(EngineThreadsTest, PlanesAcrossTheRowsAreSeenWholeWhileTheyAreWritten) {
  Setting setting;
  setting.geometry = image_of(3, {300, 300, 20}, {32, 32, 8}, GetParam());
  setting.cache_bytes = 16u << 20;
  Bench bench(setting);
  Window plane;
  plane.start = {0, 0, 11};
  plane.length = {300, 300, 1};
  std::mt19937_64 random(5);
  const ByteVector rest = noise(random, geometry::window_bytes(*setting.geometry, plane));
  Window other = plane;
  other.start[2] = 12;
  ASSERT_TRUE(bench.write_window(other, rest).ok());
  std::atomic<bool> done{false};
  std::atomic<unsigned> mixed{0};
  run_threads(4, [&](unsigned i) {
    if (i == 0) {
      for (unsigned round = 0; round < 12; ++round)
        ASSERT_TRUE(bench.write_window(plane, ByteVector(rest.size(), static_cast<std::byte>(round))).ok());
      done = true;
      return;
    }
    while (!done) {
      const ByteVector got = bench.read_window(plane);
      if (std::any_of(got.begin(), got.end(), [&](std::byte b) { return b != got[0]; })) ++mixed;
      if (bench.read_window(other) != rest) ++mixed;
    }
  });
  EXPECT_EQ(mixed, 0u);
}

// Each thread has a band of columns of its own; extents are shared by neighbours.
TEST_P(EngineThreadsTest, WindowsOfNeighboursInTheSameExtentsDoNotDisturbEachOther) {
  constexpr unsigned kThreads = 6;
  constexpr std::uint64_t kBand = 50;
  Setting setting;
  setting.geometry = image_of(2, {300, kThreads * kBand}, {48, 64}, GetParam(), 2);
  setting.cache_bytes = 1u << 20;
  Bench bench(setting);
  std::atomic<bool> done{false};
  std::thread flusher([&] {
    while (!done) EXPECT_TRUE(bench.engine().write_back(bench.object()).ok());
  });
  run_threads(kThreads, [&](unsigned thread) {
    std::mt19937_64 random(thread);
    Geometry band = *setting.geometry;
    band.shape[1] = kBand;
    ByteVector mine(band.size_bytes());
    for (unsigned round = 0; round < 60; ++round) {
      const Window inner = random_window(random, band);
      Window window = inner;
      window.start[1] += thread * kBand;
      if (round % 3 == 0) {
        ASSERT_EQ(bench.read_window(window), array_get(band, mine, inner));
      } else if (round % 3 == 1) {
        const ByteVector bytes = noise(random, geometry::window_bytes(band, inner), true);
        ASSERT_TRUE(bench.write_window(window, bytes).ok());
        array_put(band, mine, inner, bytes);
      } else {  // a piece of one row, as plain bytes
        const std::uint64_t y = random() % 300;
        const ByteVector bytes = noise(random, kBand * 2, true);
        ASSERT_TRUE(bench.engine().write(bench.object(), (y * kThreads + thread) * kBand * 2, bytes).ok());
        array_put(band, mine, window_at(y, 0, 1, kBand), bytes);
      }
    }
    ASSERT_EQ(bench.read_window(window_at(0, thread * kBand, 300, kBand)), mine);
  });
  done = true;
  flusher.join();
  const ByteVector before = bench.read_all();
  ASSERT_TRUE(bench.reopen().ok());
  EXPECT_EQ(bench.read_all(), before);
}

// Where two byte arrays differ; they are too long to be printed.
std::string difference(const ByteVector& got, const ByteVector& want) {
  if (got.size() != want.size()) return std::to_string(got.size()) + " bytes, not " + std::to_string(want.size());
  const auto first = std::mismatch(got.begin(), got.end(), want.begin()).first;
  return first == got.end() ? "" : "byte " + std::to_string(first - got.begin());
}

// Writers whose bytes are scattered over the same extents: each byte has one owner, who knows what it must be. One more
// owns what lies behind them, from the middle of an extent on, and cuts it off and extends it again.
class ScatteredWriters {
 public:
  ScatteredWriters(const Geometry& geometry, bool is_image, std::uint64_t seed)
      : geometry_(geometry), is_image_(is_image), owner_(geometry.size_bytes()) {
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < owner_.size();) {
      const auto owner = static_cast<std::byte>(random() % kWriters);
      for (std::size_t left = 1 + random() % 90; left > 0 && i < owner_.size(); --left) owner_[i++] = owner;
    }
    Setting setting;
    if (is_image) setting.geometry = geometry;
    setting.cache_bytes = 1u << 20;
    bench_ = std::make_unique<Bench>(setting);
    if (!is_image) MDFS_CHECK(bench_->engine().truncate(bench_->object(), owner_.size()).ok());
  }

  void run(std::uint64_t seed) {
    std::vector<ByteVector> mine(kWriters, ByteVector(owner_.size()));
    ByteVector tail;
    run_threads(kWriters + 1, [&](unsigned thread) {
      std::mt19937_64 random(seed + thread);
      for (unsigned round = 0; round < kRounds && !::testing::Test::HasFatalFailure(); ++round) {
        if (thread == kWriters)
          change_tail(random, tail);
        else
          step(random, thread, mine[thread]);
      }
    });
    ByteVector expected(owner_.size());
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = mine[static_cast<unsigned>(owner_[i])][i];
    expected.insert(expected.end(), tail.begin(), tail.end());
    EXPECT_EQ(difference(bench_->read_all(), expected), "");
    ASSERT_TRUE(bench_->reopen().ok());
    EXPECT_EQ(difference(bench_->read_all(), expected), "");
  }

 private:
  static constexpr unsigned kWriters = 4;
  static constexpr unsigned kRounds = 40;

  void step(std::mt19937_64& random, unsigned me, ByteVector& mine) {
    if (!is_image_) return write_plain(random, me, mine);
    const auto is_mine = [me](std::byte owner) { return static_cast<unsigned>(owner) == me; };
    const Window window = random_window(random, geometry_);
    const ByteVector owners = array_get(geometry_, owner_, window);
    ByteVector bytes = noise(random, owners.size(), random() % 2 == 0);
    std::vector<bool> mask(owners.size());
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = is_mine(owners[i]);
    switch (random() % 5) {
      case 0:
      case 1: {
        ASSERT_TRUE(bench_->write_window(window, bytes, mask).ok());
        const ByteVector before = array_get(geometry_, mine, window);
        for (std::size_t i = 0; i < mask.size(); ++i)
          if (!mask[i]) bytes[i] = before[i];
        return array_put(geometry_, mine, window, bytes);
      }
      case 2:
      case 3:
        return write_plain(random, me, mine);
      default: {
        const ByteVector got = bench_->read_window(window);
        const ByteVector want = array_get(geometry_, mine, window);
        for (std::size_t i = 0; i < mask.size(); ++i) ASSERT_TRUE(!mask[i] || got[i] == want[i]) << me << " at " << i;
        if (random() % 4 != 0) return;
        ASSERT_TRUE(bench_->engine().write_back(bench_->object()).ok());
      }
    }
  }

  // Some of my runs, one call each; one of them is punched.
  void write_plain(std::mt19937_64& random, unsigned me, ByteVector& mine) {
    std::size_t at = random() % owner_.size();
    for (unsigned runs = 0; runs < 12 && at < owner_.size(); ++runs) {
      while (at < owner_.size() && static_cast<unsigned>(owner_[at]) != me) ++at;
      std::size_t end = at;
      while (end < owner_.size() && static_cast<unsigned>(owner_[end]) == me) ++end;
      if (at == end) return;
      ByteVector bytes = noise(random, end - at);
      if (runs == 5) {
        std::fill(bytes.begin(), bytes.end(), std::byte{0});
        ASSERT_TRUE(bench_->engine().punch(bench_->object(), at, bytes.size()).ok());
      } else {
        ASSERT_TRUE(bench_->engine().write(bench_->object(), at, bytes).ok());
      }
      std::copy(bytes.begin(), bytes.end(), mine.begin() + static_cast<std::ptrdiff_t>(at));
      at = end;
    }
  }

  void change_tail(std::mt19937_64& random, ByteVector& tail) {
    const std::uint64_t size = random() % 3 == 0 ? 0 : random() % (is_image_ ? geometry_.slab_bytes() * 40 : 300'000);
    if (random() % 2 == 0) {
      ASSERT_TRUE(bench_->engine().truncate(bench_->object(), owner_.size() + size).ok());
      tail.resize(size);
    } else {
      const ByteVector bytes = noise(random, 1 + random() % 3000);
      ASSERT_TRUE(bench_->engine().write(bench_->object(), owner_.size() + size, bytes).ok());
      tail.resize(std::max<std::size_t>(tail.size(), size + bytes.size()));
      std::copy(bytes.begin(), bytes.end(), tail.begin() + static_cast<std::ptrdiff_t>(size));
    }
    ASSERT_EQ(difference(bench_->read(owner_.size(), tail.size() + 100), tail), "");
  }

  const Geometry geometry_;
  const bool is_image_;
  ByteVector owner_;  // of each byte of the canonical file
  std::unique_ptr<Bench> bench_;
};

TEST_P(EngineThreadsTest, WritersOfScatteredBytesOfTheSameExtentsLoseNothing) {
  const std::vector<Geometry> images = {
      image_of(2, {100, 150}, {48, 64}, GetParam(), 3),
      image_of(3, {9, 30, 40}, {4, 16, 16}, GetParam(), 2, geometry::ElementType::kU16),
      image_of(1, {20'000}, {3000}, GetParam(), 1, geometry::ElementType::kF32),
  };
  for (std::uint64_t seed = 1; seed <= 4 && !HasFatalFailure(); ++seed)
    for (const Geometry& image : images) ScatteredWriters(image, true, seed).run(seed * 1000);
}

INSTANTIATE_TEST_SUITE_P(Codecs, EngineThreadsTest, ::testing::Values(Codec::kRaw, Codec::kZstd));

TEST(EngineThreadsFileTest, WritersOfScatteredBytesOfTheSameCellsLoseNothing) {
  for (const std::uint64_t bytes : {1'000u, 9'000u, 140'000u, 300'000u})
    for (std::uint64_t seed = 1; seed <= 4 && !::testing::Test::HasFatalFailure(); ++seed)
      ScatteredWriters(image_of(1, {bytes}, {1000}, Codec::kRaw), false, seed).run(seed * 1000);
}

TEST(EngineThreadsFileTest, WritersOfInterleavedRecordsLoseNothing) {
  constexpr unsigned kThreads = 5;
  constexpr std::uint64_t kRecord = 3001, kRecords = 120;
  Setting setting;
  setting.cache_bytes = 1u << 20;
  Bench bench(setting);
  run_threads(kThreads, [&](unsigned thread) {
    for (std::uint64_t i = 0; i < kRecords; ++i) {
      const std::uint64_t record = i * kThreads + thread;
      const ByteVector bytes(kRecord, static_cast<std::byte>(record));
      ASSERT_TRUE(bench.engine().write(bench.object(), record * kRecord, bytes).ok());
      if (i % 16 == 0) {
        ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
      }
      ASSERT_EQ(bench.read(record * kRecord, kRecord), bytes);
    }
  });
  ASSERT_TRUE(bench.reopen().ok());
  const ByteVector all = bench.read_all();
  ASSERT_EQ(all.size(), kThreads * kRecords * kRecord);
  for (std::uint64_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<std::byte>(i / kRecord)) << i;
}

TEST(EngineThreadsFileTest, MemoryStaysWithinTheBudgetWithManyReadersAndWriters) {
  constexpr std::uint64_t kBytes = 48u << 20;
  Setting setting;
  setting.geometry = image_of(2, {4096, 4096}, {128, 128}, Codec::kZstd, 3);
  setting.cache_bytes = 8u << 20;
  setting.disk_bytes = 96u << 20;
  Bench bench(setting);
  std::atomic<bool> done{false};
  std::size_t most = 0;
  std::thread watcher([&] {
    while (!done) {
      most = std::max<std::size_t>(most, bench.engine().cache_stats().bytes);
      std::this_thread::yield();
    }
  });
  run_threads(16, [&](unsigned thread) {
    std::mt19937_64 random(thread);
    ByteVector into(256u << 10);
    for (unsigned round = 0; round < 20; ++round) {
      const std::uint64_t offset = random() % (kBytes - into.size());
      if (thread % 2 == 0) {
        ASSERT_TRUE(bench.engine().read(bench.object(), offset, into).ok());
      } else {
        const ByteVector bytes = noise(random, into.size(), true);
        ASSERT_TRUE(bench.engine().write(bench.object(), offset, bytes).ok());
      }
    }
  });
  done = true;
  watcher.join();
  // Beside the budget: the batches that two write-backs stage at a time, and an extent for each thread.
  EXPECT_LE(most, setting.cache_bytes + (8u << 20));
  EXPECT_TRUE(bench.engine().write_back(bench.object()).ok());
  EXPECT_EQ(bench.engine().cache_stats().dirty_bytes, 0u);
}

// Extents are read ahead into extents that are dirty in part, and the file is removed before the bytes arrive.
TEST(EngineDiscardTest, WhatIsBeingReadAheadFindsItsUnitsAsTheyWere) {
  Setting setting;
  setting.geometry = image_of(2, {128, 128}, {64, 128}, Codec::kRaw);
  setting.disks = 1;
  Bench bench(setting);
  device::FaultyDisk disk(bench.store().memory_disk(0), {});
  bench.store().put_in_front(0, disk);
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, ByteVector(128 * 128, std::byte{7})).ok());
  ASSERT_TRUE(bench.reopen().ok());
  ASSERT_TRUE(bench.engine().write(bench.object(), 100, ByteVector(10, std::byte{8})).ok());
  disk.add({device::FaultKind::kStuck, device::Op::kRead, 0, UINT64_MAX, 0, device::Fault::kSticky});
  bench.engine().start_window(bench.object(), window_at(0, 0, 128, 128));
  while (disk.stuck() == 0) std::this_thread::yield();
  std::atomic<bool> discarded = false;
  std::thread remover([&] {
    bench.engine().discard(bench.shared());
    discarded = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(discarded);
  disk.work_again();
  disk.release();
  remover.join();
  EXPECT_EQ(bench.engine().cache_stats().dirty_bytes, 0u);
  bench.stop_engine();  // before the disk in front of the store's own
}

// The caller of a read is killed while its disk does not answer: the memory that the disk fills outlives the call, what
// arrives late is right, and others get it.
TEST(EngineStopTest, AReaderLeavesADiskThatDoesNotAnswerAndOthersReadOn) {
  std::mt19937_64 random(5);
  for (const Codec codec : {Codec::kRaw, Codec::kZstd}) {
    Setting setting;
    setting.geometry = image_of(2, {256, 256}, {64, 64}, codec);
    setting.disks = 1;
    Bench bench(setting);
    device::FaultyDisk disk(bench.store().memory_disk(0), {});
    bench.store().put_in_front(0, disk);
    const ByteVector bytes = noise(random, 256 * 256, true);
    ASSERT_TRUE(bench.engine().write(bench.object(), 0, bytes).ok());
    ASSERT_TRUE(bench.reopen().ok());
    disk.add({device::FaultKind::kStuck, device::Op::kRead, 0, UINT64_MAX, 1, device::Fault::kSticky});  // but for one
    for (unsigned i = 0; i < 20; ++i) {
      ByteVector into(256 * 256, std::byte{1});
      const auto read = bench.engine().read(bench.object(), 0, into, [] { return true; });
      ASSERT_FALSE(read.ok());
      EXPECT_EQ(read.error().code, Errc::kCancelled);
    }
    std::thread waiting([&] {
      ByteVector into(256 * 256);
      const auto read = bench.engine().read(bench.object(), 0, into);
      EXPECT_TRUE(read.ok()) << read.error().message();
      EXPECT_EQ(into, bytes);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    disk.work_again();
    disk.release();
    waiting.join();
    EXPECT_EQ(bench.read_all(), bytes);
    bench.stop_engine();  // before the disk in front of the store's own
  }
}

// Callers come, are killed and are followed by others, while the disk sticks and works in turn.
TEST(EngineStopTest, WhatIsReadIsRightHoweverManyCallersAreKilled) {
  Setting setting;
  setting.geometry = image_of(2, {2048, 2048}, {128, 128}, Codec::kZstd);
  setting.disks = 1;
  setting.cache_bytes = 1u << 20;  // a quarter of the image
  Bench bench(setting);
  device::FaultyDisk disk(bench.store().memory_disk(0), {});
  bench.store().put_in_front(0, disk);
  std::mt19937_64 random(6);
  const ByteVector bytes = noise(random, 2048 * 2048, true);
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, bytes).ok());
  ASSERT_TRUE(bench.reopen().ok());
  std::atomic<bool> done = false;
  std::thread sticking([&] {
    std::mt19937_64 rng(7);
    while (!done) {
      disk.add({device::FaultKind::kStuck, device::Op::kRead, 0, UINT64_MAX, rng() % 8, 1 + rng() % 4});
      std::this_thread::sleep_for(std::chrono::milliseconds(rng() % 250));
      disk.work_again();
      disk.release();
    }
    disk.work_again();
    disk.release();
  });
  std::vector<std::thread> readers;
  std::atomic<unsigned> cancelled = 0;
  for (unsigned reader = 0; reader < 6; ++reader)
    readers.emplace_back([&, reader] {
      std::mt19937_64 rng(reader);
      for (unsigned i = 0; i < 30; ++i) {
        const std::size_t offset = rng() % bytes.size();
        const std::size_t length = 1 + rng() % std::min<std::size_t>(300'000, bytes.size() - offset);
        ByteVector into(length);
        const bool killed = rng() % 2 == 0;
        const auto read = bench.engine().read(bench.object(), offset, into, [&] { return killed; });
        if (read.ok())
          EXPECT_TRUE(std::equal(into.begin(), into.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset)));
        else
          cancelled += read.error().code == Errc::kCancelled ? 1 : 1000;
      }
    });
  for (std::thread& reader : readers) reader.join();
  done = true;
  sticking.join();
  EXPECT_LT(cancelled, 1000u);
  EXPECT_EQ(bench.read_all(), bytes);
  bench.stop_engine();
}

// The background keeps an object for a moment after its file is gone, and with it its inode.
TEST(EngineDiscardTest, WhoStillKnowsADiscardedContentDoesNotAskForItsInode) {
  for (const std::size_t bytes : {100u, 300'000u}) {
    Bench bench{Setting{}};
    ASSERT_TRUE(bench.engine().write(bench.object(), 0, ByteVector(bytes, std::byte{7})).ok());
    bench.engine().discard(bench.shared());
    const unsigned updates = bench.inode().updates;  // the background may have written some back before
    EXPECT_TRUE(bench.engine().write_back(bench.object()).ok());
    EXPECT_TRUE(bench.engine().write_back_all(0).ok());
    EXPECT_EQ(bench.inode().updates, updates);
    EXPECT_FALSE(bench.engine().is_dirty(bench.object()));
  }
}

}  // namespace
}  // namespace mdfs::engine::testing
