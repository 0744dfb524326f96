// Parity groups of an image's extents: made, read from, written to, repaired and dissolved.
// SPDX-License-Identifier: Apache-2.0
#include "engine/relocate/group_protector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "bench_with_faults.h"

namespace mdfs::engine::testing {
namespace {

using geometry::Codec;

constexpr unsigned kDisks = 6;

// An image of 8 x 8 extents of 16 KiB with noise in it, in groups of four, or not yet.
class GroupProtectorTest : public ::testing::TestWithParam<Codec> {
 protected:
  explicit GroupProtectorTest(unsigned disks = kDisks, unsigned width = 4)
      : faults_({.geometry = image_of(2, {8 * 128, 8 * 128}, {128, 128}, GetParam()),
                 .disks = disks,
                 .copies = true,
                 .group_members = width}),
        data_(8 * 8 * 16384) {
    std::mt19937_64 random(5);
    data_ = noise(random, data_.size());
    EXPECT_TRUE(bench_.engine().write(bench_.object(), 0, data_).ok());
    EXPECT_TRUE(bench_.engine().write_back(bench_.object()).ok());
  }

  std::vector<layout::ExtentPlace> rows() { return bench_.layout().value(); }
  ProtectionState state() { return faults_.protection(); }
  void form_groups() { EXPECT_TRUE(bench_.form_groups().ok()); }
  void expect_all_with_each_disk_gone() { faults_.expect_all_with_each_disk_gone(data_); }
  void damage(const layout::ExtentPlace& place) { faults_.damage(place.disk, place.block); }
  std::vector<layout::ExtentPlace> parities() {
    auto all = rows();
    std::erase_if(all, [](const layout::ExtentPlace& one) { return !one.is_parity; });
    return all;
  }
  void write_window(std::mt19937_64& random) {
    const geometry::Geometry geometry = bench_.geometry_now();
    const geometry::Window window = random_window(random, geometry);
    const ByteVector bytes = noise(random, geometry::window_bytes(geometry, window));
    ASSERT_TRUE(bench_.write_window(window, bytes).ok());
    array_put(geometry, data_, window, bytes);
  }

  BenchWithFaults faults_;
  Bench& bench_ = faults_.bench();
  ByteVector data_;
};

class PairsOnThreeDisksTest : public GroupProtectorTest {
 protected:
  PairsOnThreeDisksTest() : GroupProtectorTest(3, 2) {}
};

TEST_P(GroupProtectorTest, WhatIsWrittenHasCopiesAndThenAQuarterOfThatAsParities) {
  EXPECT_EQ(state().copied, 64u);
  EXPECT_EQ(state().grouped, 0u);
  form_groups();
  EXPECT_EQ(state().copied, 64u);
  EXPECT_GE(state().grouped, 56u);
  const std::uint64_t parities_and_copies = rows().size() - 64;
  EXPECT_LE(parities_and_copies, 24u) << "sixteen where no two of a box lie on one disk";
  EXPECT_EQ(bench_.inode().stored_bytes, static_cast<std::int64_t>(bench_.store().used_blocks() * 4096));
  expect_all_with_each_disk_gone();
  EXPECT_EQ(bench_.form_groups()->extents, 0u);
}

TEST_P(GroupProtectorTest, ParitiesAreSpreadOverTheDisks) {
  form_groups();
  std::map<unsigned, unsigned> of_disk;
  for (const layout::ExtentPlace& row : rows()) ++of_disk[row.disk];
  for (unsigned disk = 0; disk < kDisks; ++disk)
    EXPECT_NEAR(of_disk[disk], static_cast<double>(rows().size()) / kDisks, 5) << disk;
}

TEST_P(GroupProtectorTest, WritesIntoGroupsKeepAllBytesWithAnyDiskGone) {
  form_groups();
  std::mt19937_64 random(9);
  for (unsigned i = 0; i < 6; ++i) {
    write_window(random);
    expect_all_with_each_disk_gone();  // with what left the groups
    if (i % 2 == 1) form_groups();
    EXPECT_EQ(state().copied, state().extents);
  }
  form_groups();
  for (const layout::ExtentPlace& row : rows()) EXPECT_FALSE(row.is_leaver);
  expect_all_with_each_disk_gone();
  EXPECT_EQ(bench_.inode().stored_bytes, static_cast<std::int64_t>(bench_.store().used_blocks() * 4096));
}

TEST_P(GroupProtectorTest, HolesAndTruncationsLeaveTheOtherMembersProtected) {
  form_groups();
  ASSERT_TRUE(bench_.engine().punch(bench_.object(), 1024 * 128, 1024 * 128).ok());
  std::fill_n(data_.begin() + 1024 * 128, 1024 * 128, std::byte{0});
  expect_all_with_each_disk_gone();
  ASSERT_TRUE(bench_.engine().truncate(bench_.object(), 1024 * 640).ok());
  data_.resize(1024 * 640);
  expect_all_with_each_disk_gone();
  form_groups();
  EXPECT_EQ(state().copied, state().extents);
  for (const layout::ExtentPlace& row : rows()) EXPECT_FALSE(row.is_leaver);
  expect_all_with_each_disk_gone();
  ASSERT_TRUE(bench_.engine().truncate(bench_.object(), 0).ok());
  EXPECT_EQ(bench_.store().used_blocks(), 0u);
  EXPECT_EQ(bench_.inode().stored_bytes, 0);
}

TEST_P(GroupProtectorTest, AFlippedBitInAnyPieceIsServedAndRepaired) {
  form_groups();
  for (const bool of_parity : {false, true}) {
    const auto all = rows();
    const auto piece =
        std::find_if(all.begin(), all.end(), [&](const auto& row) { return of_parity ? row.is_parity : !row.is_copy; });
    damage(*piece);
    ASSERT_TRUE(bench_.reopen().ok());
    EXPECT_EQ(bench_.read_all(), data_);
    ProtectRequest request;
    request.extents = {piece->index};
    request.width = 4;
    request.verifies = true;
    EXPECT_EQ(bench_.engine().protect(bench_.object(), request).value().repaired, 1u);
    EXPECT_EQ(bench_.engine().protect(bench_.object(), request).value().repaired, 0u);
    expect_all_with_each_disk_gone();
  }
}

TEST_P(GroupProtectorTest, TwoBadPiecesOfAGroupAreAnErrorOfTheirExtentsAlone) {
  form_groups();
  const auto first = parities().front();
  const auto all = rows();
  const auto member =
      std::find_if(all.begin(), all.end(), [&](const auto& row) { return !row.is_copy && row.index == first.index; });
  damage(first);
  damage(*member);
  ASSERT_TRUE(bench_.reopen().ok());
  geometry::Window window;
  window.start = {member->index[0] * 128, member->index[1] * 128};
  window.length = {128, 128};
  ByteVector into(128 * 128);
  EXPECT_EQ(bench_.engine().read_window(bench_.object(), window, 0, into).error().code, Errc::kCorrupt);
  unsigned bad = 0;
  for (std::uint64_t y = 0; y < 8; ++y)
    for (std::uint64_t x = 0; x < 8; ++x) {
      window.start = {y * 128, x * 128};
      if (!bench_.engine().read_window(bench_.object(), window, 0, into).ok())
        ++bad;
      else
        EXPECT_EQ(into, array_get(bench_.geometry_now(), data_, window));
    }
  EXPECT_EQ(bad, 1u);
  // Nothing is given up: what is left of the group may be of use.
  ProtectRequest request;
  request.extents = {member->index};
  request.width = 4;
  request.verifies = true;
  EXPECT_EQ(bench_.engine().protect(bench_.object(), request).value().damaged.size(), 1u);
  EXPECT_EQ(parities().size(), std::count_if(all.begin(), all.end(), [](const auto& row) { return row.is_parity; }));
}

TEST_P(GroupProtectorTest, ALostDiskIsRebuiltAndThenAnother) {
  form_groups();
  bench_.store().set_missing(true);  // the last disk
  faults_.lose(kDisks - 1);
  EXPECT_LT(state().copied, 64u);
  EXPECT_EQ(state().lost, 0u);
  const auto outcome = bench_.convert();
  ASSERT_TRUE(outcome.ok());
  EXPECT_GT(outcome->repaired, 0u);
  EXPECT_EQ(outcome->no_room, 0u);
  EXPECT_EQ(state().copied, 64u);
  for (const layout::ExtentPlace& row : rows()) EXPECT_NE(row.disk, kDisks - 1);
  EXPECT_EQ(bench_.convert()->repaired, 0u);
  for (unsigned disk = 0; disk < kDisks - 1; ++disk) {
    ASSERT_TRUE(bench_.reopen().ok());
    faults_.lose(disk);
    EXPECT_EQ(bench_.read_all(), data_) << disk;
    faults_.disk(disk).work_again();
  }
}

TEST_P(GroupProtectorTest, WritesGoOnWithoutADisk) {
  form_groups();
  bench_.store().set_missing(true);
  faults_.lose(kDisks - 1);
  std::mt19937_64 random(11);
  for (unsigned i = 0; i < 4; ++i) write_window(random);
  ASSERT_TRUE(bench_.reopen().ok());
  EXPECT_EQ(bench_.read_all(), data_);
  EXPECT_TRUE(bench_.convert().ok());
  EXPECT_EQ(state().copied, 64u);
  EXPECT_EQ(bench_.read_all(), data_);
}

TEST_P(GroupProtectorTest, AnImageIsConvertedFromEachProtectionToEachOther) {
  struct Way {
    bool copies;
    unsigned width;
  };
  const Way ways[] = {{true, 4}, {false, 1}, {true, 2}, {true, 1}, {true, 8}, {true, 4}, {true, 1}, {false, 1}};
  std::mt19937_64 random(3);
  for (const Way& way : ways) {
    bench_.set_protection(way.copies, way.width);
    ASSERT_TRUE(bench_.convert().ok());
    EXPECT_EQ(state().copied, way.copies ? 64u : 0u);
    EXPECT_EQ(state().grouped > 0, way.copies && way.width > 1);
    ASSERT_TRUE(bench_.reopen().ok());
    EXPECT_EQ(bench_.read_all(), data_);
    if (way.copies) expect_all_with_each_disk_gone();
    write_window(random);
    ASSERT_TRUE(bench_.engine().write_back(bench_.object()).ok());
  }
  for (const layout::ExtentPlace& row : rows()) EXPECT_FALSE(row.is_copy);
}

TEST_P(GroupProtectorTest, WritersGoOnWhileGroupsAreMadeAndDissolved) {
  std::mt19937_64 random(3);
  for (const unsigned width : {4u, 1u, 2u}) {
    bench_.set_protection(true, width);
    std::thread converting([&] { EXPECT_TRUE(bench_.convert().ok()); });
    for (unsigned i = 0; i < 40; ++i) write_window(random);
    converting.join();
    EXPECT_TRUE(bench_.convert().ok());
    EXPECT_EQ(state().copied, state().extents);
    EXPECT_EQ(bench_.read_all(), data_);
    expect_all_with_each_disk_gone();
  }
}

TEST_P(GroupProtectorTest, PiecesOfGroupsMoveAndStayApart) {
  form_groups();
  for (const bool of_copies : {false, true}) {
    for (unsigned disk = 0; disk < kDisks; ++disk) {
      MoveRequest request;
      for (const layout::ExtentPlace& row : rows())
        if (row.is_copy == of_copies) request.extents.push_back(row.index);
      request.of_copies = of_copies;
      request.disk = [disk](const geometry::Coord&) { return disk; };
      request.most_runs = 0;
      const auto moved = bench_.engine().move(bench_.object(), request);
      ASSERT_TRUE(moved.ok());
      EXPECT_EQ(moved->moved + moved->no_room.size(), request.extents.size());
      EXPECT_EQ(state().copied, 64u) << "no two pieces on one disk";
    }
    expect_all_with_each_disk_gone();
  }
  EXPECT_EQ(bench_.inode().stored_bytes, static_cast<std::int64_t>(bench_.store().used_blocks() * 4096));
}

TEST_P(GroupProtectorTest, PiecesLeaveADisk) {
  form_groups();
  ProtectRequest request;
  request.width = 4;
  request.drained_disks = 0b100;
  for (std::uint64_t page = 0; page != UINT64_MAX;) {
    request.extents = bench_.engine().find_unprotected(bench_.object(), request, page, 100).value();
    ASSERT_TRUE(bench_.engine().protect(bench_.object(), request).ok());
  }
  for (const layout::ExtentPlace& row : rows()) EXPECT_NE(row.disk, 2u);
  expect_all_with_each_disk_gone();
}

TEST_P(PairsOnThreeDisksTest, WithoutADiskPairsBecomeCopies) {
  form_groups();
  EXPECT_GT(state().grouped, 0u);
  expect_all_with_each_disk_gone();
  bench_.store().set_missing(true);
  faults_.lose(2);
  ASSERT_TRUE(bench_.convert().ok());
  EXPECT_EQ(state().copied, 64u);
  EXPECT_EQ(state().grouped, 0u);
  for (unsigned disk = 0; disk < 2; ++disk) {
    ASSERT_TRUE(bench_.reopen().ok());
    faults_.lose(disk);
    EXPECT_EQ(bench_.read_all(), data_) << disk;
    faults_.disk(disk).work_again();
  }
}

constexpr auto kNameOfCodec = [](const auto& one) { return one.param == Codec::kRaw ? "Raw" : "Zstd"; };
INSTANTIATE_TEST_SUITE_P(Codecs, GroupProtectorTest, ::testing::Values(Codec::kRaw, Codec::kZstd), kNameOfCodec);
INSTANTIATE_TEST_SUITE_P(Codecs, PairsOnThreeDisksTest, ::testing::Values(Codec::kRaw, Codec::kZstd), kNameOfCodec);

}  // namespace
}  // namespace mdfs::engine::testing
