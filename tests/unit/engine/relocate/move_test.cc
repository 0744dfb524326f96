// Moving stored bytes: data stay what they are whatever happens meanwhile, and every block is accounted for.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "device/testing/faulty_disk.h"
#include "engine_fixture.h"

namespace mdfs::engine::testing {
namespace {

using geometry::Codec;
using geometry::Coord;
using geometry::Window;

class EngineMoveTest : public ::testing::TestWithParam<Kind> {
 protected:
  EngineMoveTest() : setting_{GetParam().geometry}, bench_(setting_) {
    std::mt19937_64 random(5);
    data_ = noise(random, 600 * 500);
    // A block or a row at a time from the end, so that neighbours lie apart.
    for (std::uint64_t at = data_.size(); at > 0; at -= std::min<std::uint64_t>(at, 20'000)) {
      const std::uint64_t from = at - std::min<std::uint64_t>(at, 20'000);
      EXPECT_TRUE(bench_.engine().write(bench_.object(), from, ConstBytes(data_).subspan(from, at - from)).ok());
      EXPECT_TRUE(bench_.engine().write_back(bench_.object()).ok());
    }
    EXPECT_TRUE(bench_.engine().consolidate(bench_.object(), UINT64_MAX, true).ok());
  }

  std::vector<layout::ExtentPlace> layout() {
    auto places = bench_.layout();
    EXPECT_TRUE(places.ok());
    return std::move(places).value();
  }
  std::vector<Coord> extents() {
    std::set<Coord> extents;
    for (const layout::ExtentPlace& place : layout()) extents.insert(place.index);
    return {extents.begin(), extents.end()};
  }
  static std::uint64_t blocks(const std::vector<layout::ExtentPlace>& places) {
    std::uint64_t sum = 0;
    for (const layout::ExtentPlace& place : places) sum += (place.stored_bytes + 4095) / 4096;
    return sum;
  }
  static std::size_t runs(std::vector<layout::ExtentPlace> places) {
    std::sort(places.begin(), places.end(), [](const layout::ExtentPlace& a, const layout::ExtentPlace& b) {
      return std::pair(a.disk, a.block) < std::pair(b.disk, b.block);
    });
    std::size_t count = 0;
    for (std::size_t i = 0; i < places.size(); ++i)
      count += i == 0 || places[i - 1].disk != places[i].disk ||
                       places[i - 1].block + (places[i - 1].stored_bytes + 4095) / 4096 != places[i].block
                   ? 1
                   : 0;
    return count;
  }
  void expect_data() {
    EXPECT_EQ(bench_.read(0, data_.size()), data_);
    ASSERT_TRUE(bench_.reopen().ok());
    EXPECT_EQ(bench_.read(0, data_.size()), data_);
    EXPECT_EQ(bench_.store().used_blocks(), blocks(layout()));
    EXPECT_EQ(bench_.inode().stored_bytes, static_cast<std::int64_t>(blocks(layout()) * 4096));
  }

  Setting setting_;
  Bench bench_;
  ByteVector data_;
};

TEST_P(EngineMoveTest, AllUnitsOfADiskBecomeOneRun) {
  const std::vector<layout::ExtentPlace> before = layout();
  MoveRequest request;
  request.extents = extents();
  const Result<MoveOutcome> moved = bench_.engine().move(bench_.object(), request);
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(moved->moved, request.extents.size());
  EXPECT_EQ(moved->moved_bytes, blocks(before) * 4096);
  EXPECT_EQ(moved->changed + moved->no_room.size() + moved->damaged.size(), 0u);
  EXPECT_EQ(runs(layout()), 3u);
  EXPECT_GE(runs(before), 3u);
  expect_data();
}

TEST_P(EngineMoveTest, ADiskCanBeLeftAlone) {
  MoveRequest request;
  request.extents = extents();
  request.most_runs = 0;
  request.disk = [](const Coord& extent) { return static_cast<unsigned>(extent[0] % 2) * 2; };
  const Result<MoveOutcome> moved = bench_.engine().move(bench_.object(), request);
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(moved->moved, request.extents.size());
  for (const layout::ExtentPlace& place : layout()) EXPECT_EQ(place.disk, place.index[0] % 2 * 2);
  expect_data();
}

TEST_P(EngineMoveTest, WhatIsWrittenMeanwhileCountsAndTheRestIsMoved) {
  std::mt19937_64 random(6);
  bool written = false;
  MoveRequest request;
  request.extents = extents();
  request.pace = [&](std::uint64_t) -> Status {
    if (std::exchange(written, true)) return {};
    const ByteVector bytes = noise(random, 50'000);
    std::copy(bytes.begin(), bytes.end(), data_.begin() + 100'000);
    EXPECT_TRUE(bench_.engine().write(bench_.object(), 100'000, bytes).ok());
    return bench_.engine().write_back(bench_.object());
  };
  const Result<MoveOutcome> moved = bench_.engine().move(bench_.object(), request);
  ASSERT_TRUE(moved.ok());
  EXPECT_GT(moved->changed, 0u);
  EXPECT_EQ(moved->moved + moved->changed, request.extents.size());
  EXPECT_TRUE(moved->damaged.empty());
  expect_data();
}

TEST_P(EngineMoveTest, WhatIsCutOffMeanwhileStaysAway) {
  MoveRequest request;
  request.extents = extents();
  bool cut = false;
  request.pace = [&](std::uint64_t) -> Status {
    if (std::exchange(cut, true)) return {};
    return bench_.engine().truncate(bench_.object(), 0);
  };
  const Result<MoveOutcome> moved = bench_.engine().move(bench_.object(), request);
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(moved->changed, request.extents.size());
  EXPECT_EQ(bench_.store().used_blocks(), 0u);
}

TEST_P(EngineMoveTest, AMoveThatIsToldToEndLeavesEverythingWhereItWas) {
  const std::vector<layout::ExtentPlace> before = layout();
  MoveRequest request;
  request.extents = extents();
  request.pace = [](std::uint64_t) -> Status { return {Errc::kBusy, "enough"}; };
  const Result<MoveOutcome> moved = bench_.engine().move(bench_.object(), request);
  ASSERT_FALSE(moved.ok());
  EXPECT_EQ(moved.error().code, Errc::kBusy);
  const std::vector<layout::ExtentPlace> after = layout();
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i].block, before[i].block);
  expect_data();
}

TEST_P(EngineMoveTest, WithoutRoomNothingMoves) {
  bench_.store().set_full(true);
  for (const std::uint32_t most_runs : {1u, 0u}) {
    MoveRequest request;
    request.extents = extents();
    request.most_runs = most_runs;
    const Result<MoveOutcome> moved = bench_.engine().move(bench_.object(), request);
    ASSERT_TRUE(moved.ok());
    EXPECT_EQ(moved->no_room.size(), request.extents.size());
    EXPECT_EQ(moved->moved, 0u);
  }
  bench_.store().set_full(false);
  expect_data();
}

TEST_P(EngineMoveTest, ADamagedUnitIsNamedAndTheOthersMove) {
  ASSERT_TRUE(bench_.reopen().ok());
  const layout::ExtentPlace place = layout().front();
  std::byte byte{};
  const std::uint64_t at = place.block * 4096 + place.stored_bytes / 2;
  bench_.store().memory_disk(place.disk).peek(at, {&byte, 1});
  const std::byte spoilt = byte ^ std::byte{4};
  bench_.store().memory_disk(place.disk).poke(at, {&spoilt, 1});
  MoveRequest request;
  request.extents = extents();
  const Result<MoveOutcome> moved = bench_.engine().move(bench_.object(), request);
  ASSERT_TRUE(moved.ok());
  ASSERT_EQ(moved->damaged.size(), 1u);
  EXPECT_EQ(moved->damaged[0].extent, place.index);
  EXPECT_EQ(moved->damaged[0].error.code, Errc::kCorrupt);
  EXPECT_EQ(moved->moved, request.extents.size() - 1);
  EXPECT_EQ(layout().front().block, place.block);
  bench_.store().memory_disk(place.disk).poke(at, {&byte, 1});
  expect_data();
}

TEST_P(EngineMoveTest, ADiskThatCannotBeWrittenLeavesEverythingWhereItWas) {
  std::vector<std::unique_ptr<device::FaultyDisk>> disks;
  for (unsigned i = 0; i < 3; ++i) {
    disks.push_back(std::make_unique<device::FaultyDisk>(bench_.store().memory_disk(i), std::vector<device::Fault>{}));
    bench_.store().put_in_front(i, *disks[i]);
  }
  disks[1]->add({device::FaultKind::kError, device::Op::kWrite, 0, UINT64_MAX, 0, device::Fault::kSticky});
  MoveRequest request;
  request.extents = extents();
  const Result<MoveOutcome> moved = bench_.engine().move(bench_.object(), request);
  ASSERT_FALSE(moved.ok());
  EXPECT_EQ(moved.error().code, Errc::kIo);
  disks[1]->work_again();
  expect_data();
  bench_.stop_engine();
}

TEST_P(EngineMoveTest, ADirtyUnitIsWrittenWhereItBelongsAfterItsOldBytesHaveMoved) {
  std::mt19937_64 random(8);
  const ByteVector bytes = noise(random, 9000);
  std::copy(bytes.begin(), bytes.end(), data_.begin() + 70'000);
  ASSERT_TRUE(bench_.engine().write(bench_.object(), 70'000, bytes).ok());
  MoveRequest request;
  request.extents = extents();
  const Result<MoveOutcome> moved = bench_.engine().move(bench_.object(), request);
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(moved->moved, request.extents.size());
  expect_data();
}

INSTANTIATE_TEST_SUITE_P(Objects, EngineMoveTest,
                         ::testing::Values(Kind{"file", std::nullopt},
                                           Kind{"raw", image_of(2, {500, 600}, {100, 128}, Codec::kRaw)},
                                           Kind{"zstd", image_of(2, {500, 600}, {64, 96}, Codec::kZstd)}),
                         kNameOf);

// Each writer has a band of columns of its own; a mover takes groups of extents hither and thither.
TEST(EngineMoveThreadsTest, WritersAndReadersDoNotNoticeAMover) {
  constexpr unsigned kWriters = 3;
  constexpr std::uint64_t kBand = 70;
  for (const Codec codec : {Codec::kRaw, Codec::kZstd}) {
    Setting setting;
    setting.geometry = image_of(2, {400, kWriters * kBand}, {32, 48}, codec, 2);
    setting.cache_bytes = 1u << 20;
    Bench bench(setting);
    std::atomic<bool> done{false};
    std::atomic<std::uint64_t> moved{0};
    std::thread mover([&] {
      std::mt19937_64 random(99);
      while (!done) {
        MoveRequest request;
        for (unsigned i = 0; i < 12; ++i) request.extents.push_back({random() % 13, random() % 5, 0});
        std::sort(request.extents.begin(), request.extents.end());
        request.extents.erase(std::unique(request.extents.begin(), request.extents.end()), request.extents.end());
        const auto disk = static_cast<unsigned>(random() % 4);
        if (disk < 3) request.disk = [disk](const Coord&) { return disk; };
        request.most_runs = static_cast<std::uint32_t>(random() % 3);
        const Result<MoveOutcome> outcome = bench.engine().move(bench.object(), request);
        ASSERT_TRUE(outcome.ok()) << outcome.error().message();
        ASSERT_TRUE(outcome->damaged.empty()) << outcome->damaged[0].error.message();
        moved += outcome->moved;
      }
    });
    std::vector<std::thread> writers;
    for (unsigned thread = 0; thread < kWriters; ++thread)
      writers.emplace_back([&, thread] {
        std::mt19937_64 random(thread);
        geometry::Geometry band = *setting.geometry;
        band.shape[1] = kBand;
        ByteVector mine(band.size_bytes());
        for (unsigned round = 0; round < 80 || (moved < 200 && round < 20'000); ++round) {
          const Window inner = random_window(random, band);
          Window window = inner;
          window.start[1] += thread * kBand;
          if (round % 2 == 0) {
            const ByteVector bytes = noise(random, geometry::window_bytes(*setting.geometry, window));
            ASSERT_TRUE(bench.write_window(window, bytes).ok());
            array_put(band, mine, inner, bytes);
          } else {
            ASSERT_EQ(bench.read_window(window), array_get(band, mine, inner));
          }
        }
      });
    for (std::thread& thread : writers) thread.join();
    done = true;
    mover.join();
    EXPECT_GT(moved, 0u);
    ASSERT_TRUE(bench.reopen().ok());
    const auto places = bench.layout();
    ASSERT_TRUE(places.ok());
    std::uint64_t blocks = 0;
    for (const layout::ExtentPlace& place : *places) blocks += (place.stored_bytes + 4095) / 4096;
    EXPECT_EQ(bench.store().used_blocks(), blocks);
  }
}

TEST(EngineMoveOddTest, WhatIsInTheTreeOrNotThereIsPassedOver) {
  Bench bench({});
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, ByteVector(100, std::byte{1})).ok());
  ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  MoveRequest request;
  request.extents = {{0, 0, 0}, {1, 0, 0}, {7, 0, 0}};
  const Result<MoveOutcome> moved = bench.engine().move(bench.object(), request);
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(moved->moved + moved->changed + moved->no_room.size(), 0u);
}

TEST(EngineMoveOddTest, ADiskThatIsNotThereIsRefused) {
  Bench bench({});
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, ByteVector(100'000, std::byte{1})).ok());
  ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  MoveRequest request;
  request.extents = {{0, 0, 0}};
  request.disk = [](const Coord&) { return 3u; };
  const Result<MoveOutcome> moved = bench.engine().move(bench.object(), request);
  ASSERT_FALSE(moved.ok());
  EXPECT_EQ(moved.error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace mdfs::engine::testing
