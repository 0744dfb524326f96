// Second copies of an image's extents: made, read, repaired and removed.
// SPDX-License-Identifier: Apache-2.0
#include "engine/relocate/protector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "bench_with_faults.h"

namespace mdfs::engine::testing {
namespace {

using geometry::Codec;

constexpr unsigned kDisks = 4;

// An image of 6 x 5 extents of 16 KiB with noise in it.
class ProtectorTest : public ::testing::TestWithParam<Codec> {
 protected:
  explicit ProtectorTest(bool copies = true)
      : faults_(
            {.geometry = image_of(2, {6 * 128, 5 * 128}, {128, 128}, GetParam()), .disks = kDisks, .copies = copies}),
        data_(6 * 5 * 16384) {
    std::mt19937_64 random(5);
    data_ = noise(random, data_.size());
    EXPECT_TRUE(bench_.engine().write(bench_.object(), 0, data_).ok());
    EXPECT_TRUE(bench_.engine().write_back(bench_.object()).ok());
  }

  std::vector<layout::ExtentPlace> rows() { return bench_.layout().value(); }
  ProtectionState state() { return faults_.protection(); }
  void expect_all_with_each_disk_gone() { faults_.expect_all_with_each_disk_gone(data_); }
  void damage(const layout::ExtentPlace& place) { faults_.damage(place.disk, place.block); }
  std::vector<RelocationCandidate> damaged() {
    std::vector<RelocationCandidate> all = bench_.engine().relocation_candidates();
    std::erase_if(all, [](const RelocationCandidate& one) { return one.reason != RelocationReason::kDamaged; });
    return all;
  }

  BenchWithFaults faults_;
  Bench& bench_ = faults_.bench();
  ByteVector data_;
};

class UnprotectedTest : public ProtectorTest {
 protected:
  UnprotectedTest() : ProtectorTest(false) {}
};

TEST_P(ProtectorTest, EachExtentHasItsCopyOnAnotherDiskAndEachDiskItsShare) {
  const auto all = rows();
  ASSERT_EQ(all.size(), 60u);
  std::vector<unsigned> first(kDisks), second(kDisks);
  for (std::size_t i = 0; i < all.size(); i += 2) {
    EXPECT_EQ(all[i].index, all[i + 1].index);
    EXPECT_NE(all[i].disk, all[i + 1].disk);
    EXPECT_NE(all[i].is_copy, all[i + 1].is_copy);
    ++(all[i].is_copy ? second : first)[all[i].disk];
    ++(all[i + 1].is_copy ? second : first)[all[i + 1].disk];
  }
  for (unsigned disk = 0; disk < kDisks; ++disk) EXPECT_LE(second[disk], 11u) << "of 30 copies";
  EXPECT_EQ(state().copied, 30u);
  EXPECT_EQ(bench_.inode().stored_bytes, static_cast<std::int64_t>(bench_.store().used_blocks() * 4096));
}

TEST_P(ProtectorTest, ALostDiskLosesNothing) { expect_all_with_each_disk_gone(); }

TEST_P(ProtectorTest, WindowWritesTruncationsAndHolesKeepTheCopies) {
  std::mt19937_64 random(9);
  geometry::Window window;
  window.start = {100, 50};
  window.length = {400, 300};
  const ByteVector bytes = noise(random, 400 * 300);
  ASSERT_TRUE(bench_.write_window(window, bytes).ok());
  array_put(bench_.geometry_now(), data_, window, bytes);
  expect_all_with_each_disk_gone();
  ASSERT_TRUE(bench_.engine().punch(bench_.object(), 640 * 64, 640 * 128).ok());
  std::fill_n(data_.begin() + 640 * 64, 640 * 128, std::byte{0});
  expect_all_with_each_disk_gone();
  ASSERT_TRUE(bench_.engine().truncate(bench_.object(), 640 * 300).ok());
  data_.resize(640 * 300);
  expect_all_with_each_disk_gone();
  EXPECT_EQ(state().copied, state().extents);
  ASSERT_TRUE(bench_.engine().truncate(bench_.object(), 0).ok());
  EXPECT_EQ(bench_.store().used_blocks(), 0u);
  EXPECT_EQ(bench_.inode().stored_bytes, 0);
}

TEST_P(ProtectorTest, ABitFlippedInEitherPieceIsServedFromTheOtherAndRepaired) {
  const auto all = rows();
  for (const std::size_t row : {0u, 1u}) {
    const bool of_first = !all[row].is_copy;
    damage(all[row]);
    ASSERT_TRUE(bench_.reopen().ok());
    EXPECT_EQ(bench_.read_all(), data_);
    EXPECT_EQ(damaged().size(), of_first ? 1u : 0u) << "readers look at the first piece";
    if (!of_first) {  // the scrub would find it
      ProtectRequest request;
      request.extents = {all[row].index};
      request.verifies = true;
      EXPECT_EQ(bench_.engine().protect(bench_.object(), request).value().repaired, 1u);
    } else {
      EXPECT_EQ(bench_.engine().relocate(bench_.object(), RelocationReason::kDamaged, {}).value().extents, 1u);
    }
    EXPECT_TRUE(damaged().empty());
    expect_all_with_each_disk_gone();
  }
}

TEST_P(ProtectorTest, DamageOfBothPiecesIsAnErrorOfThatExtentAlone) {
  const auto all = rows();
  damage(all[0]);
  damage(all[1]);
  ASSERT_TRUE(bench_.reopen().ok());
  ByteVector into(100);
  EXPECT_EQ(bench_.engine().read(bench_.object(), 0, into).error().code, Errc::kCorrupt);
  EXPECT_EQ(bench_.read(128, 100), ByteVector(data_.begin() + 128, data_.begin() + 228));
  ProtectRequest request;
  request.extents = {all[0].index};
  request.verifies = true;
  EXPECT_EQ(bench_.engine().protect(bench_.object(), request).value().damaged.size(), 1u);
}

TEST_P(UnprotectedTest, AnImageIsConvertedAndBack) {
  EXPECT_EQ(state().copied, 0u);
  const std::uint64_t blocks = bench_.store().used_blocks();
  bench_.set_copies(true);
  EXPECT_EQ(bench_.convert().value().made, 30u);
  EXPECT_EQ(bench_.store().used_blocks(), 2 * blocks);
  expect_all_with_each_disk_gone();
  EXPECT_EQ(bench_.convert().value().made, 0u);
  bench_.set_copies(false);
  EXPECT_EQ(bench_.convert().value().removed, 30u);
  EXPECT_EQ(bench_.store().used_blocks(), blocks);
  ASSERT_TRUE(bench_.reopen().ok());
  EXPECT_EQ(bench_.read_all(), data_);
  EXPECT_EQ(bench_.inode().stored_bytes, static_cast<std::int64_t>(blocks * 4096));
}

TEST_P(UnprotectedTest, WritersGoOnWhileAnImageIsConverted) {
  std::mt19937_64 random(3);
  for (const bool wanted : {true, false, true}) {
    bench_.set_copies(wanted);
    std::thread converting([&] { EXPECT_TRUE(bench_.convert().ok()); });
    for (unsigned i = 0; i < 40; ++i) {
      const geometry::Geometry geometry = bench_.geometry_now();
      const geometry::Window window = random_window(random, geometry);
      const ByteVector bytes = noise(random, geometry::window_bytes(geometry, window));
      EXPECT_TRUE(bench_.write_window(window, bytes).ok());
      array_put(geometry, data_, window, bytes);
    }
    converting.join();
    EXPECT_TRUE(bench_.convert().ok());  // what was being written when the first one began
    EXPECT_EQ(state().copied, wanted ? state().extents : 0u);
    EXPECT_EQ(bench_.read_all(), data_);
  }
  expect_all_with_each_disk_gone();
}

TEST_P(UnprotectedTest, WritesDoNotBeginWithoutRoomForBothPieces) {
  bench_.set_copies(true);
  ASSERT_TRUE(bench_.convert().ok());
  bench_.store().set_full(true);
  ByteVector more(16384);
  EXPECT_EQ(bench_.engine().write(bench_.object(), data_.size(), more).error().code, Errc::kNoSpace);
  bench_.store().set_full(false);
}

TEST_P(ProtectorTest, PiecesMoveAndStayApart) {
  for (const bool of_copies : {false, true}) {
    for (unsigned disk = 0; disk < kDisks; ++disk) {
      MoveRequest request;
      for (const layout::ExtentPlace& row : rows())
        if (!row.is_copy) request.extents.push_back(row.index);
      request.of_copies = of_copies;
      request.disk = [disk](const geometry::Coord&) { return disk; };
      request.most_runs = 0;
      const auto moved = bench_.engine().move(bench_.object(), request);
      ASSERT_TRUE(moved.ok());
      EXPECT_EQ(moved->moved + moved->no_room.size(), 30u);
      EXPECT_EQ(state().copied, 30u);
      for (const layout::ExtentPlace& row : rows()) {
        if (row.is_copy != of_copies || row.disk == disk) continue;
        EXPECT_NE(std::find(moved->no_room.begin(), moved->no_room.end(), row.index), moved->no_room.end());
      }
    }
    expect_all_with_each_disk_gone();
  }
}

TEST_P(ProtectorTest, AMoveReadsTheOtherPieceWhereItsOwnIsBad) {
  const auto all = rows();
  const layout::ExtentPlace& first = all[0].is_copy ? all[1] : all[0];
  damage(first);
  MoveRequest request;
  request.extents = {first.index};
  const unsigned copy_disk = all[0].is_copy ? all[0].disk : all[1].disk;
  request.disk = [&](const geometry::Coord&) {
    unsigned disk = 0;
    while (disk == first.disk || disk == copy_disk) ++disk;
    return disk;
  };
  EXPECT_EQ(bench_.engine().move(bench_.object(), request).value().moved, 1u);
  expect_all_with_each_disk_gone();
}

TEST_P(ProtectorTest, PiecesOfAnAbsentDiskAreMadeAnew) {
  bench_.store().set_missing(true);  // the last disk
  faults_.lose(kDisks - 1);
  EXPECT_LT(state().copied, 30u);
  const auto outcome = bench_.convert();
  ASSERT_TRUE(outcome.ok());
  EXPECT_GT(outcome->repaired, 0u);
  EXPECT_EQ(state().copied, 30u);
  for (const layout::ExtentPlace& row : rows()) EXPECT_NE(row.disk, kDisks - 1);
  // Then the next disk is lost.
  ASSERT_TRUE(bench_.reopen().ok());
  faults_.lose(0);
  EXPECT_EQ(bench_.read_all(), data_);
}

INSTANTIATE_TEST_SUITE_P(Codecs, ProtectorTest, ::testing::Values(Codec::kRaw, Codec::kZstd),
                         [](const auto& one) { return one.param == Codec::kRaw ? "Raw" : "Zstd"; });
INSTANTIATE_TEST_SUITE_P(Codecs, UnprotectedTest, ::testing::Values(Codec::kRaw, Codec::kZstd),
                         [](const auto& one) { return one.param == Codec::kRaw ? "Raw" : "Zstd"; });

}  // namespace
}  // namespace mdfs::engine::testing
