// Extents that return, turn by turn.
// SPDX-License-Identifier: Apache-2.0
#include "engine/relocate/home_relocator.h"

#include <gtest/gtest.h>

#include "engine_fixture.h"

namespace mdfs::engine::testing {
namespace {

constexpr std::uint64_t kSide = 512, kExtent = 64;
constexpr std::uint64_t kRewritten = 6;  // extents, no two of them neighbours

class HomeRelocatorTest : public ::testing::Test {
 protected:
  HomeRelocatorTest() : bench_(setting()) {
    std::mt19937_64 random(3);
    expected_ = noise(random, kSide * kSide);
    write(0, 0, kSide, kSide);
    for (std::uint64_t i = 0; i < kRewritten; ++i) {
      const std::uint64_t y = kExtent * (1 + i / 3 * 4), x = kExtent * (1 + i % 3 * 2);
      for (std::uint64_t row = y; row < y + kExtent; ++row)
        for (std::uint64_t column = x; column < x + kExtent; ++column) expected_[row * kSide + column] ^= std::byte{1};
      write(y, x, kExtent, kExtent);
    }
    EXPECT_TRUE(bench_.any_store().commit_freed().ok());
  }
  static Setting setting() {
    Setting setting;
    setting.geometry = image_of(2, {kSide, kSide}, {kExtent, kExtent}, geometry::Codec::kRaw);
    setting.disks = 1;
    setting.on_disks = true;
    return setting;
  }
  void write(std::uint64_t y, std::uint64_t x, std::uint64_t height, std::uint64_t width) {
    geometry::Window window;
    window.start = {y, x};
    window.length = {height, width};
    EXPECT_TRUE(bench_.write_window(window, array_get(*setting().geometry, expected_, window)).ok());
  }
  std::uint64_t returned(const Pace& pace = {}) {
    const auto outcome = bench_.engine().relocate(bench_.object(), RelocationReason::kAwayFromHome, pace);
    EXPECT_TRUE(outcome.ok());
    return outcome.ok() ? outcome->extents : 0;
  }
  std::uint64_t left() { return bench_.engine().extents_away_from_home(); }

  Bench bench_;
  ByteVector expected_;
};

TEST_F(HomeRelocatorTest, ATurnBringsSomethingAndLeavesTheRestForTheNextOne) {
  ASSERT_EQ(left(), kRewritten);
  for (std::uint64_t turn = 1; turn <= kRewritten; ++turn) {
    bool has_moved = false;
    EXPECT_EQ(returned([&](std::uint64_t bytes) -> Status {
                if (bytes > 0 && !std::exchange(has_moved, true)) return {};
                return {Errc::kBusy, "the turn is over"};
              }),
              1u);
    EXPECT_EQ(left(), kRewritten - turn);
  }
  EXPECT_TRUE(bench_.engine().relocation_candidates().empty());
  EXPECT_EQ(bench_.read_all(), expected_);
  const auto fragmentation = bench_.engine().fragmentation(bench_.object(), {});
  ASSERT_TRUE(fragmentation.ok());
  EXPECT_EQ(fragmentation->factor(), 1.0);
}

TEST_F(HomeRelocatorTest, WhereThereIsNoRoomForMovesNothingWaitsForThem) {
  std::vector<store::Reservation> all;  // of the room that there is
  while (const std::uint64_t blocks = bench_.any_store().space().available_blocks) {
    auto some = bench_.any_store().reserve(blocks);
    ASSERT_TRUE(some.ok());
    all.push_back(std::move(*some));
  }
  EXPECT_EQ(returned(), 0u);
  EXPECT_EQ(left(), 0u);
  EXPECT_EQ(bench_.read_all(), expected_);
}

TEST_F(HomeRelocatorTest, NothingForgottenRelocatesHome) {
  bench_.engine().forget_all_homes();
  EXPECT_EQ(left(), 0u);
  EXPECT_EQ(returned(), 0u);
  EXPECT_EQ(bench_.read_all(), expected_);
}

}  // namespace
}  // namespace mdfs::engine::testing
