// Second copies of the blocks of files: made, read, repaired and removed.
// SPDX-License-Identifier: Apache-2.0
#include "engine/relocate/cell_protector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/crc32c.h"
#include "bench_with_faults.h"
#include "engine/map/extent_map.h"

namespace mdfs::engine::testing {
namespace {

using device::Fault;
using device::FaultKind;
using device::Op;
using format::CellPieces;

constexpr unsigned kDisks = 4;
constexpr unsigned kCells = 9;
constexpr std::uint64_t kBytes = 8 * MDFS_FILE_CELL + 20'000;

// A file of nine cells, the last one of five blocks.
class CellProtectorTest : public ::testing::Test {
 protected:
  explicit CellProtectorTest(bool copies = true) : faults_({.geometry = {}, .disks = kDisks, .copies = copies}) {
    data_ = noise(random_, kBytes);
    EXPECT_TRUE(bench_.engine().write(bench_.object(), 0, data_).ok());
    EXPECT_TRUE(bench_.engine().write_back(bench_.object()).ok());
  }

  CellPieces cell(std::uint64_t index) {
    return ExtentMap(bench_.any_store()).cell_pieces(bench_.object(), index).value();
  }
  ProtectionState state() { return faults_.protection(); }
  void expect_all_with_each_disk_gone() { faults_.expect_all_with_each_disk_gone(data_); }
  void expect_apart() {
    for (std::uint64_t index = 0; index < kCells; ++index) {
      const CellPieces pieces = cell(index);
      EXPECT_EQ(pieces.protected_blocks(0), pieces.first.block_mask()) << "cell " << index;
    }
  }
  void write(std::uint64_t offset, std::size_t length) {
    const ByteVector bytes = noise(random_, length);
    ASSERT_TRUE(bench_.engine().write(bench_.object(), offset, bytes).ok());
    ASSERT_TRUE(bench_.engine().write_back(bench_.object()).ok());
    data_.resize(std::max(data_.size(), offset + length));
    std::copy(bytes.begin(), bytes.end(), data_.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  void damage(const format::BlockPlace& place) { faults_.damage(place.address.disk, place.address.block); }
  bool is_damaged(const format::BlockPlace& place) {
    ByteVector block(4096);
    bench_.store().memory_disk(place.address.disk).peek(place.address.block * 4096, block);
    return crc32c(block) != place.crc32c;
  }
  std::size_t candidates() {
    const auto all = bench_.engine().relocation_candidates();
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const RelocationCandidate& one) {
      return one.reason == RelocationReason::kDamaged;
    }));
  }
  void repair() { ASSERT_TRUE(bench_.engine().relocate(bench_.object(), RelocationReason::kDamaged, {}).ok()); }

  std::mt19937_64 random_{5};
  BenchWithFaults faults_;
  Bench& bench_ = faults_.bench();
  ByteVector data_;
};

class UnprotectedCellsTest : public CellProtectorTest {
 protected:
  UnprotectedCellsTest() : CellProtectorTest(false) {}
};

TEST_F(CellProtectorTest, EachBlockHasItsCopyOnAnotherDisk) {
  expect_apart();
  EXPECT_EQ(state().extents, kCells);
  EXPECT_EQ(state().copied, kCells);
  EXPECT_EQ(state().copied_bytes, 8 * MDFS_FILE_CELL + 5 * 4096u);
  EXPECT_EQ(bench_.store().used_blocks(), 2 * (8 * 32 + 5u));
  EXPECT_EQ(bench_.inode().stored_bytes, static_cast<std::int64_t>(bench_.store().used_blocks() * 4096));
}

TEST_F(CellProtectorTest, ALostDiskLosesNothing) { expect_all_with_each_disk_gone(); }

TEST_F(CellProtectorTest, WritesTruncationsAndHolesKeepTheCopies) {
  for (const auto& [offset, length] : {std::pair<std::uint64_t, std::size_t>{5000, 100},
                                       {MDFS_FILE_CELL - 4096, 3 * 4096},
                                       {3 * MDFS_FILE_CELL, MDFS_FILE_CELL},
                                       {kBytes - 10, 40'000}})
    write(offset, length);
  expect_apart();
  expect_all_with_each_disk_gone();
  ASSERT_TRUE(bench_.engine().punch(bench_.object(), 10'000, 2 * MDFS_FILE_CELL).ok());
  std::fill_n(data_.begin() + 10'000, 2 * MDFS_FILE_CELL, std::byte{0});
  expect_apart();
  expect_all_with_each_disk_gone();
  ASSERT_TRUE(bench_.engine().truncate(bench_.object(), 5 * MDFS_FILE_CELL + 7000).ok());
  data_.resize(5 * MDFS_FILE_CELL + 7000);
  expect_apart();
  expect_all_with_each_disk_gone();
  EXPECT_EQ(state().copied, state().extents);
  ASSERT_TRUE(bench_.engine().truncate(bench_.object(), 0).ok());
  EXPECT_EQ(bench_.store().used_blocks(), 0u);
  EXPECT_EQ(bench_.inode().stored_bytes, 0);
}

TEST_F(CellProtectorTest, BadBlocksOfEitherPieceInOneCellAreReadFromTheOtherAndRepaired) {
  const CellPieces before = cell(2);
  const std::vector<format::BlockPlace> bad = {*before.first.find(0), *before.copy.find(1), *before.first.find(31)};
  for (const format::BlockPlace& place : bad) damage(place);
  ASSERT_TRUE(bench_.reopen().ok());
  EXPECT_EQ(bench_.read_all(), data_);
  EXPECT_EQ(candidates(), 1u) << "one cell";
  repair();
  EXPECT_EQ(candidates(), 0u);
  const CellPieces after = cell(2);
  for (unsigned block = 0; block < 32; ++block) {
    EXPECT_FALSE(is_damaged(*after.first.find(block))) << "block " << block;
    EXPECT_FALSE(is_damaged(*after.copy.find(block))) << "copy of block " << block;
  }
  expect_apart();
  expect_all_with_each_disk_gone();
  EXPECT_EQ(bench_.store().used_blocks(), 2 * (8 * 32 + 5u));
}

// A piece is bad, and the disk of another block's piece fails while the first one is read again.
TEST_F(CellProtectorTest, ABadBlockAndALostDiskAtATimeAreAnErrorOnlyWhereBothPiecesAreGone) {
  const CellPieces pieces = cell(2);
  damage(*pieces.first.find(3));
  faults_.lose(pieces.copy.find(3)->address.disk);
  ASSERT_TRUE(bench_.reopen().ok());
  ByteVector into(4096);
  const std::uint64_t at = 2 * MDFS_FILE_CELL + 3 * 4096;
  EXPECT_FALSE(bench_.engine().read(bench_.object(), at, into).ok());
  EXPECT_EQ(bench_.read(at - 4096, 4096), ByteVector(data_.begin() + static_cast<std::ptrdiff_t>(at - 4096),
                                                     data_.begin() + static_cast<std::ptrdiff_t>(at)));
}

TEST_F(CellProtectorTest, DamageOfBothPiecesOfABlockIsNamedAndTheOtherBlocksAreRepaired) {
  const CellPieces pieces = cell(1);
  damage(*pieces.first.find(4));
  damage(*pieces.copy.find(4));
  damage(*pieces.first.find(9));
  ProtectRequest request;
  request.extents = {bench_.object().extent_coord(1)};
  request.verifies = true;
  const auto outcome = bench_.engine().protect(bench_.object(), request);
  ASSERT_TRUE(outcome.ok());
  ASSERT_EQ(outcome->damaged.size(), 1u);
  EXPECT_NE(outcome->damaged[0].error.message().find("cell 1"), std::string::npos);
  EXPECT_EQ(outcome->repaired, 1u);
  EXPECT_FALSE(is_damaged(*cell(1).first.find(9)));
  EXPECT_EQ(*cell(1).first.find(4), *pieces.first.find(4));
}

TEST_F(UnprotectedCellsTest, AFileIsConvertedAndBack) {
  EXPECT_EQ(state().copied, 0u);
  const std::uint64_t blocks = bench_.store().used_blocks();
  bench_.set_copies(true);
  EXPECT_EQ(bench_.convert().value().made, kCells);
  EXPECT_EQ(bench_.store().used_blocks(), 2 * blocks);
  expect_apart();
  expect_all_with_each_disk_gone();
  EXPECT_EQ(bench_.convert().value().made, 0u);
  bench_.set_copies(false);
  EXPECT_EQ(bench_.convert().value().removed, kCells);
  EXPECT_EQ(bench_.store().used_blocks(), blocks);
  ASSERT_TRUE(bench_.reopen().ok());
  EXPECT_EQ(bench_.read_all(), data_);
  EXPECT_EQ(bench_.inode().stored_bytes, static_cast<std::int64_t>(blocks * 4096));
}

TEST_F(UnprotectedCellsTest, WritersContinueWhileAFileIsConverted) {
  for (const bool wanted : {true, false, true}) {
    bench_.set_copies(wanted);
    std::thread converting([&] { EXPECT_TRUE(bench_.convert().ok()); });
    for (unsigned i = 0; i < 60; ++i) write(random_() % kBytes, 1 + random_() % 30'000);
    converting.join();
    EXPECT_TRUE(bench_.convert().ok());  // what was being written when the first one began
    EXPECT_EQ(state().copied, wanted ? state().extents : 0u);
    EXPECT_EQ(bench_.read_all(), data_);
  }
  expect_all_with_each_disk_gone();
}

TEST_F(UnprotectedCellsTest, WritesDoNotBeginWithoutRoomForBothPieces) {
  bench_.set_copies(true);
  ASSERT_TRUE(bench_.convert().ok());
  bench_.store().set_full(true);
  const ByteVector more(16384);
  EXPECT_EQ(bench_.engine().write(bench_.object(), data_.size(), more).error().code, Errc::kNoSpace);
  bench_.store().set_full(false);
}

TEST_F(CellProtectorTest, PiecesMoveAndStayApart) {
  write(5000, 100);  // a cell in several runs
  for (const bool of_copies : {false, true}) {
    for (unsigned disk = 0; disk < kDisks; ++disk) {
      MoveRequest request;
      for (std::uint64_t index = 0; index < kCells; ++index)
        request.extents.push_back(bench_.object().extent_coord(index));
      request.of_copies = of_copies;
      request.disk = [disk](const geometry::Coord&) { return disk; };
      request.most_runs = 0;
      const auto moved = bench_.engine().move(bench_.object(), request);
      ASSERT_TRUE(moved.ok());
      EXPECT_EQ(moved->moved + moved->no_room.size(), kCells);
      EXPECT_GT(moved->moved, 0u);
      expect_apart();
    }
    expect_all_with_each_disk_gone();
  }
  EXPECT_EQ(bench_.inode().stored_bytes, static_cast<std::int64_t>(bench_.store().used_blocks() * 4096));
}

TEST_F(CellProtectorTest, PiecesOfAnAbsentDiskAreMadeAnew) {
  bench_.store().set_missing(true);  // the last disk
  faults_.lose(kDisks - 1);
  EXPECT_LT(state().copied, kCells);
  const auto outcome = bench_.convert();
  ASSERT_TRUE(outcome.ok());
  EXPECT_GT(outcome->repaired, 0u);
  EXPECT_EQ(state().copied, kCells);
  for (std::uint64_t index = 0; index < kCells; ++index)
    EXPECT_EQ(cell(index).protected_blocks(std::uint64_t{1} << (kDisks - 1)), cell(index).first.block_mask());
  // Then the next disk is lost.
  ASSERT_TRUE(bench_.reopen().ok());
  faults_.lose(0);
  EXPECT_EQ(bench_.read_all(), data_);
}

// Some blocks have copies and lie on a lost disk, the others have none.
TEST_F(CellProtectorTest, AMoveReadsEachBlockWhereItCanBeRead) {
  const unsigned lost = cell(1).first.find(0)->address.disk;
  bench_.set_copies(false);
  faults_.disk(lost).add({FaultKind::kError, Op::kWrite, 0, UINT64_MAX, 0, Fault::kSticky});
  write(MDFS_FILE_CELL + 4 * 4096, 3 * 4096);
  faults_.disk(lost).work_again();
  const CellPieces pieces = cell(1);
  ASSERT_EQ(pieces.copy.blocks(), 29u);
  const std::uint64_t taken =
      CellPieces::disks_of(pieces.first, UINT32_MAX) | CellPieces::disks_of(pieces.copy, UINT32_MAX);
  unsigned target = 0;
  while ((taken >> target & 1) != 0) ++target;
  ASSERT_LT(target, kDisks);
  faults_.lose(lost);
  MoveRequest request;
  request.extents = {bench_.object().extent_coord(1)};
  request.disk = [target](const geometry::Coord&) { return target; };
  request.most_runs = 0;
  const auto moved = bench_.engine().move(bench_.object(), request);
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(moved->moved, 1u);
  ASSERT_TRUE(bench_.reopen().ok());
  EXPECT_EQ(bench_.read(MDFS_FILE_CELL, MDFS_FILE_CELL),
            ByteVector(data_.begin() + MDFS_FILE_CELL, data_.begin() + 2 * MDFS_FILE_CELL));
}

// A quarter of its blocks on each disk, so that no disk is free of them.
TEST_F(UnprotectedCellsTest, ACellThatLiesOnAllDisksGetsItsCopies) {
  for (unsigned disk = 0; disk < kDisks; ++disk) {
    for (unsigned other = 0; other < kDisks; ++other)
      if (other != disk) faults_.disk(other).add({FaultKind::kError, Op::kWrite, 0, UINT64_MAX, 0, Fault::kSticky});
    write(MDFS_FILE_CELL + disk * std::uint64_t{8} * 4096, std::size_t{8} * 4096);
    for (unsigned each = 0; each < kDisks; ++each) faults_.disk(each).work_again();
    EXPECT_EQ(cell(1).first.find(disk * 8)->address.disk, disk);
  }
  bench_.set_copies(true);
  EXPECT_EQ(bench_.convert().value().no_room, 0u);
  expect_apart();
  expect_all_with_each_disk_gone();
}

TEST(CellWorkTest, WhatIsBadIsMadeFromWhatIsLeft) {
  CellPieces cell;
  cell.first.replace({{0, 10}, 5, 5, 0, {1, 2, 3, 4}});
  cell.copy.replace({{1, 20}, 5, 5, 0, {1, 2, 3}});
  const CellWork fine = work_on_cell(cell, 0, 0, 0b1111);
  EXPECT_EQ(fine.first, 0u);
  EXPECT_EQ(fine.copy, 0b1000u) << "has none";
  EXPECT_EQ(fine.damaged, 0u);
  EXPECT_FALSE(fine.again);
  const CellWork bad = work_on_cell(cell, 0b0001, 0b0010, 0b1011);
  EXPECT_EQ(bad.first, 0b0001u);
  EXPECT_EQ(bad.copy, 0b1010u);
  EXPECT_EQ(bad.damaged, 0b0100u);
  EXPECT_FALSE(bad.again);
  EXPECT_TRUE(work_on_cell(cell, 0b1000, 0, 0b1111).again) << "the only piece is not to stay";
}

}  // namespace
}  // namespace mdfs::engine::testing
