// Extents in many runs, of images with copies: some disk is left for the copy.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "engine_fixture.h"

namespace mdfs::engine::testing {
namespace {

constexpr unsigned kDisks = 2;
constexpr std::uint32_t kBlocks = 4;  // of the extent

class PiecesApartTest : public ::testing::Test {
 protected:
  explicit PiecesApartTest(bool copies = false)
      : bench_({.geometry = image_of(2, {128, 128}, {128, 128}, geometry::Codec::kRaw),
                .disks = kDisks,
                .copies = copies}) {
    std::mt19937_64 random(3);
    data_ = noise(random, 128 * 128);
  }

  // So many single blocks are free on each disk, and nothing else.
  void leave_free(const std::vector<unsigned>& singles) {
    std::vector<store::Run> holes;
    for (std::uint16_t disk = 0; disk < kDisks; ++disk) {
      store::AllocationRequest request{.disk = disk, .may_fall_back = false};
      for (unsigned i = 0; i < singles[disk]; ++i) {
        request.blocks = 1;
        holes.push_back(bench_.store().allocate(request, nullptr).value());
        taken_.push_back(bench_.store().allocate(request, nullptr).value());
      }
      for (request.blocks = 4096; request.blocks > 0;) {
        if (const auto run = bench_.store().allocate(request, nullptr); run.ok())
          taken_.push_back(*run);
        else
          request.blocks /= 2;
      }
    }
    for (const store::Run& hole : holes) bench_.store().abandon(hole);
  }
  void write() {
    ASSERT_TRUE(bench_.engine().write(bench_.object(), 0, data_).ok());
    ASSERT_TRUE(bench_.engine().write_back(bench_.object()).ok());
  }
  void free_the_rest() {
    for (const store::Run& run : taken_) bench_.store().abandon(run);
  }
  std::uint64_t copied() {
    std::uint64_t page = 0;
    return bench_.engine().protection(bench_.object(), page, {}).value().copied;
  }

  Bench bench_;
  ByteVector data_;
  std::vector<store::Run> taken_;
};

class WithCopiesTest : public PiecesApartTest {
 protected:
  WithCopiesTest() : PiecesApartTest(true) {}
};

TEST_F(PiecesApartTest, AnExtentThatFillsAllDisksIsGatheredOnOneAndCopied) {
  leave_free({kBlocks / 2, kBlocks / 2});
  write();
  free_the_rest();
  bench_.set_copies(true);
  for (unsigned pass = 0; copied() == 0 && pass < 2; ++pass) {
    const auto outcome = bench_.convert();
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome->no_room, 0u);
    EXPECT_EQ(outcome->again, pass == 0);
  }
  EXPECT_EQ(copied(), 1u);
  EXPECT_EQ(bench_.read_all(), data_);
  EXPECT_EQ(bench_.store().used_blocks(), 2 * kBlocks);
}

TEST_F(WithCopiesTest, TheRunsOfAnExtentLieOnOneDiskIfOneHasRoom) {
  leave_free({kBlocks - 1, 2 * kBlocks});
  write();
  EXPECT_EQ(copied(), 0u);
  free_the_rest();
  const auto outcome = bench_.convert();
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->made, 1u);
  EXPECT_FALSE(outcome->again);
  EXPECT_EQ(bench_.read_all(), data_);
}

}  // namespace
}  // namespace mdfs::engine::testing
