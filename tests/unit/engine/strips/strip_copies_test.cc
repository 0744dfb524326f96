// Second copies of strips: written, read, freed and repaired.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "bench_with_faults.h"

namespace mdfs::engine::testing {
namespace {

using geometry::Codec;

constexpr std::uint64_t kDepth = 16, kSide = 200;
constexpr std::uint64_t kFrame = kSide * kSide;
constexpr unsigned kDisks = 4;

class StripCopiesTest : public ::testing::TestWithParam<Codec> {
 protected:
  StripCopiesTest()
      : faults_({.geometry = image_of(3, {0, kSide, kSide}, {kDepth, 64, 64}, GetParam()),
                 .disks = kDisks,
                 .disk_bytes = 64u << 20,
                 .copies = true}) {}

  void append(std::uint64_t frames) {
    for (; frames > 0; --frames) {
      const ByteVector frame = noise(random_, kFrame, true);
      ASSERT_TRUE(bench_.engine().write(bench_.object(), array_.size(), frame).ok());
      array_.insert(array_.end(), frame.begin(), frame.end());
      ASSERT_TRUE(bench_.engine().write_back(bench_.object()).ok());
    }
  }
  std::vector<layout::ExtentPlace> rows(bool copies) {
    auto all = bench_.layout().value();
    std::erase_if(all, [&](const layout::ExtentPlace& row) { return !row.in_strip || row.is_copy != copies; });
    return all;
  }
  void expect_all_with_each_disk_gone() { faults_.expect_all_with_each_disk_gone(array_); }
  void damage(const layout::ExtentPlace& place) { faults_.damage(place.disk, place.block); }
  std::uint64_t lacking() { return bench_.engine().strips_to_consolidate(bench_.object(), true, {}).value(); }

  std::mt19937_64 random_{5};
  BenchWithFaults faults_;
  Bench& bench_ = faults_.bench();
  ByteVector array_;
};

TEST_P(StripCopiesTest, EachFrameIsStoredTwiceAndNoMore) {
  for (std::uint64_t frame = 0; frame < kDepth + 3; ++frame) {
    const std::uint64_t before = bench_.store().used_blocks();
    append(1);
    EXPECT_EQ(bench_.store().used_blocks() - before, 2 * 16u);
  }
  const auto first = rows(false), second = rows(true);
  ASSERT_EQ(first.size(), (kDepth + 3) * 16);
  ASSERT_EQ(second.size(), first.size());
  EXPECT_EQ(lacking(), 0u);
  EXPECT_EQ(bench_.inode().stored_bytes, static_cast<std::int64_t>(bench_.store().used_blocks() * 4096));
  expect_all_with_each_disk_gone();
}

TEST_P(StripCopiesTest, TruncatedStripsKeepTheirCopiesAndGiveBackTheRest) {
  append(5);
  for (const std::uint64_t bytes : {4 * kFrame + 7000, 2 * kFrame, 0 * kFrame}) {
    ASSERT_TRUE(bench_.engine().truncate(bench_.object(), bytes).ok());
    array_.resize(bytes);
    ASSERT_TRUE(bench_.engine().write_back(bench_.object()).ok());
    expect_all_with_each_disk_gone();
    EXPECT_EQ(bench_.inode().stored_bytes, static_cast<std::int64_t>(bench_.store().used_blocks() * 4096));
  }
  EXPECT_EQ(bench_.store().used_blocks(), 0u);
}

TEST_P(StripCopiesTest, ConsolidatedExtentsHaveCopiesAndNoStripIsLeft) {
  append(kDepth + 3);
  ASSERT_TRUE(bench_.engine().consolidate(bench_.object(), UINT64_MAX, true).ok());
  EXPECT_TRUE(rows(false).empty());
  EXPECT_TRUE(rows(true).empty());
  expect_all_with_each_disk_gone();
}

TEST_P(StripCopiesTest, ABadPartIsReadFromItsCopyAndItsExtentWrittenWhole) {
  append(4);
  for (const std::size_t row : {3u, 20u, 40u}) damage(rows(false)[row]);
  ASSERT_TRUE(bench_.reopen().ok());
  EXPECT_EQ(bench_.read_all(), array_);
  ASSERT_TRUE(bench_.engine().relocate(bench_.object(), RelocationReason::kDamaged, {}).ok());
  expect_all_with_each_disk_gone();
}

TEST_P(StripCopiesTest, AStripWithoutACopyIsCountedAndConsolidated) {
  bench_.set_copies(false);
  append(2);
  bench_.set_copies(true);
  EXPECT_GT(lacking(), 0u);
  append(1);
  ASSERT_TRUE(bench_.engine().consolidate(bench_.object(), UINT64_MAX, true).ok());
  EXPECT_EQ(lacking(), 0u);
  expect_all_with_each_disk_gone();
}

INSTANTIATE_TEST_SUITE_P(Codecs, StripCopiesTest, ::testing::Values(Codec::kRaw, Codec::kZstd),
                         [](const auto& one) { return one.param == Codec::kRaw ? "Raw" : "Zstd"; });

}  // namespace
}  // namespace mdfs::engine::testing
