// Where extents come: those that replace others in one run on each disk, if there is room for one; none in a run on two
// bitmap pages.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "engine_fixture.h"

namespace mdfs::engine::testing {
namespace {

constexpr unsigned kDisks = 3;
constexpr std::uint32_t kHole = 2;  // blocks, and extents
constexpr unsigned kHoles = 6;

// An image of two groups, three rows of extents of a block each, on disks that begin with some small holes.
class ReplacingTest : public ::testing::Test {
 protected:
  ReplacingTest() : bench_({.geometry = image_of(2, {384, 256}, {64, 64}, geometry::Codec::kRaw), .disks = kDisks}) {
    std::vector<store::Run> holes;
    for (unsigned i = 0; i < kHoles; ++i)
      for (std::uint16_t disk = 0; disk < kDisks; ++disk) {
        holes.push_back(allocate(disk, kHole));
        allocate(disk, 1);
      }
    std::mt19937_64 random(3);
    EXPECT_TRUE(bench_.engine().write(bench_.object(), 0, noise(random, 384 * 256)).ok());
    EXPECT_TRUE(bench_.engine().write_back(bench_.object()).ok());
    for (const store::Run& hole : holes) bench_.store().abandon(hole);
  }

  store::Run allocate(std::uint16_t disk, std::uint32_t blocks) {
    store::AllocationRequest request;
    request.disk = disk;
    request.blocks = blocks;
    return bench_.store().allocate(request, nullptr).value();
  }
  // Nothing but the holes is left.
  void fill() {
    for (std::uint16_t disk = 0; disk < kDisks; ++disk) {
      store::AllocationRequest request;
      request.disk = disk;
      for (request.blocks = 4096; request.blocks > kHole;) {
        request.may_fall_back = false;
        if (!bench_.store().allocate(request, nullptr).ok()) request.blocks = std::max(kHole, request.blocks / 2);
      }
    }
  }
  // The last row of the first group and the first row of the second one.
  void replace_rows() {
    std::mt19937_64 random(4);
    geometry::Window window;
    window.start = {128, 0};
    window.length = {128, 256};
    const ByteVector bytes = noise(random, 128 * 256);
    ASSERT_TRUE(bench_.write_window(window, bytes).ok());
    EXPECT_EQ(bench_.read_window(window), bytes);
  }
  // Runs in which these rows lie on each disk.
  std::vector<unsigned> runs() {
    std::map<unsigned, std::vector<std::uint64_t>> blocks;
    const auto places = bench_.layout();
    EXPECT_TRUE(places.ok());
    for (const layout::ExtentPlace& place : *places)
      if (place.index[0] == 2 || place.index[0] == 3) blocks[place.disk].push_back(place.block);
    std::vector<unsigned> runs;
    for (auto& [disk, of_disk] : blocks) {
      std::sort(of_disk.begin(), of_disk.end());
      unsigned count = 1;
      for (std::size_t i = 1; i < of_disk.size(); ++i) count += of_disk[i] == of_disk[i - 1] + 1 ? 0 : 1;
      runs.push_back(count);
    }
    return runs;
  }

  Bench bench_;
};

TEST_F(ReplacingTest, WhatIsReplacedOfSeveralGroupsComesIntoOneRunOnEachDisk) {
  replace_rows();
  EXPECT_EQ(runs(), std::vector<unsigned>(kDisks, 1));
}

TEST_F(ReplacingTest, WhereThereIsNoRoomForAllEachGroupComesIntoOneRun) {
  fill();
  replace_rows();
  for (const unsigned count : runs()) EXPECT_LE(count, 2u);
}

// A disk of two bitmap pages, on which little is free: blocks before and behind the place where the pages meet.
class BitmapPagesTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kBlock = 4096, kSecondPage = 1024, kBefore = 7, kPart = kBefore * kBlock;

  static Setting setting(std::optional<geometry::Geometry> geometry) {
    return {.geometry = std::move(geometry),
            .disks = 1,
            .disk_bytes = (std::uint64_t{MDFS_BITS_PER_PAGE} + kSecondPage) * kBlock};
  }
  static void leave_free(Bench& bench, std::uint32_t behind) {
    store::AllocationRequest request;
    request.blocks = MDFS_BITS_PER_PAGE - 1 - kBefore;
    ASSERT_TRUE(bench.store().allocate(request, nullptr).ok());
    request.at_block = MDFS_BITS_PER_PAGE + behind;
    request.blocks = kSecondPage - behind;
    ASSERT_TRUE(bench.store().allocate(request, nullptr).ok());
  }
};

// The allocator frees no run that lies on two pages: a reader of the record would end the daemon.
TEST_F(BitmapPagesTest, APiecedExtentHasNoRunOnTwoPages) {
  Bench bench(setting(image_of(1, {2 * kPart}, {2 * kPart}, geometry::Codec::kRaw)));
  leave_free(bench, kBefore);
  const std::uint64_t used = bench.store().used_blocks();
  std::mt19937_64 random(5);
  const ByteVector bytes = noise(random, 2 * kPart);
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, bytes).ok());
  ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  EXPECT_EQ(bench.store().used_blocks(), used + 2 * kBefore);
  ASSERT_TRUE(bench.reopen().ok());
  EXPECT_EQ(bench.read_all(), bytes);
  EXPECT_TRUE(bench.engine().truncate(bench.object(), 0).ok());
  EXPECT_EQ(bench.store().used_blocks(), used);
}

TEST_F(BitmapPagesTest, ACellHasNoRunOnTwoPages) {
  Bench bench(setting({}));
  leave_free(bench, 40);
  const std::uint64_t used = bench.store().used_blocks();
  std::mt19937_64 random(6);
  const ByteVector bytes = noise(random, 2 * kPart);
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{kPart}}) {
    ASSERT_TRUE(bench.engine().write(bench.object(), offset, ConstBytes(bytes).subspan(offset, kPart)).ok());
    ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  }
  EXPECT_EQ(bench.store().used_blocks(), used + 2 * kBefore);
  EXPECT_EQ(bench.read_all(), bytes);
  EXPECT_TRUE(bench.engine().truncate(bench.object(), 0).ok());
  EXPECT_EQ(bench.store().used_blocks(), used);
}

}  // namespace
}  // namespace mdfs::engine::testing
