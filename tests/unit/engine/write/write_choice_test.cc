// Which extents are written back next, and when: groups are split only if there is no other way.
// SPDX-License-Identifier: Apache-2.0
#include "engine/write/write_choice.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <vector>

#include "engine_fixture.h"

namespace mdfs::engine::testing {
namespace {

using geometry::Coord;

constexpr std::uint64_t kBatch = 1000;

struct Chosen {
  std::size_t object;
  WhichBlocks which;
  bool operator==(const Chosen&) const = default;
};

std::optional<Chosen> choose(const std::vector<DirtyFacts>& objects, bool pressed) {
  const std::optional<WriteChoice> choice = choose_to_write(objects, kBatch, pressed);
  return choice ? std::optional(Chosen{choice->object, choice->which}) : std::nullopt;
}

TEST(WriteChoiceTest, NothingIsChosenOfNothing) {
  EXPECT_FALSE(choose({}, false));
  EXPECT_FALSE(choose({}, true));
}

TEST(WriteChoiceTest, FullGroupsWaitUntilTheyMakeABatch) {
  EXPECT_FALSE(choose({{kBatch - 1, 5 * kBatch, 1, 0}}, false));
  EXPECT_EQ(choose({{kBatch - 1, 5 * kBatch, 1, 0}, {kBatch, kBatch, 2, 0}}, false),
            (Chosen{1, WhichBlocks::kFullGroups}));
}

TEST(WriteChoiceTest, UnderPressureGroupsThatAreFullGoBeforeThoseThatAreBeingFilled) {
  EXPECT_EQ(choose({{0, 5 * kBatch, 1, 0}, {10, 10, 2, 0}, {20, 20, 3, 0}}, true),
            (Chosen{2, WhichBlocks::kFullGroups}));
}

TEST(WriteChoiceTest, OfGroupsThatAreNotFullTheLongestIdleGoFirst) {
  EXPECT_EQ(choose({{0, 5 * kBatch, 30, 0}, {0, 10, 20, 0}, {0, 20, 25, 0}}, true), (Chosen{1, WhichBlocks::kFull}));
  EXPECT_EQ(choose({{0, 5 * kBatch, 30, 0}, {0, 0, 20, 0}, {0, 20, 25, 0}}, true), (Chosen{1, WhichBlocks::kAll}));
}

TEST(WriteChoiceTest, WhatIsAboutToBeSyncedGoesFirst) {
  const DirtyFacts synced{0, 0, 5, 10};
  EXPECT_EQ(choose({{5 * kBatch, 5 * kBatch, 1, 0}, synced}, false), (Chosen{1, WhichBlocks::kPieces}));
  EXPECT_EQ(choose({{5 * kBatch, 5 * kBatch, 1, 0}, synced}, true), (Chosen{1, WhichBlocks::kPieces}));
}

RC_GTEST_PROP(WriteChoiceTest, UnderPressureThereIsAlwaysAChoiceAndItHasWhatItSays, ()) {
  std::vector<DirtyFacts> objects(*rc::gen::inRange(1, 8));
  for (DirtyFacts& one : objects) {
    one.full_group_bytes = *rc::gen::element<std::uint64_t>(0, 1, kBatch, 2 * kBatch);
    one.full_bytes = one.full_group_bytes + *rc::gen::element<std::uint64_t>(0, 5);
    one.last_dirtied_ns = *rc::gen::inRange(0, 5);
  }
  const auto choice = choose(objects, true);
  RC_ASSERT((choice && choice->object < objects.size()));
  if (choice->which == WhichBlocks::kFullGroups) RC_ASSERT(objects[choice->object].full_group_bytes > 0);
  if (choice->which == WhichBlocks::kFull) RC_ASSERT(objects[choice->object].full_bytes > 0);
  const auto calm = choose(objects, false);
  RC_ASSERT((!calm || (calm == choice && objects[calm->object].full_group_bytes >= kBatch)));
}

// ---- what is written because time is up: an image of two groups, three rows of extents each

constexpr std::int64_t kSecond = 1'000'000'000;

class WriteBackAgeTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kRowBytes = 64 * 256;  // of extents

  WriteBackAgeTest()
      : bench_({.geometry = image_of(2, {384, 256}, {64, 64}, geometry::Codec::kRaw), .environment = &environment_}) {}

  void write_row(std::uint64_t row) {
    std::mt19937_64 random(row);
    const ByteVector bytes = noise(random, kRowBytes);
    ASSERT_TRUE(bench_.engine().write(bench_.object(), row * kRowBytes, bytes).ok());
  }
  std::set<std::uint64_t> rows_on_disks() {
    std::set<std::uint64_t> rows;
    const auto places = bench_.layout();
    EXPECT_TRUE(places.ok());
    for (const layout::ExtentPlace& place : *places) rows.insert(place.index[0]);
    return rows;
  }

  SeededEnvironment environment_{1};
  Bench bench_;
};

TEST_F(WriteBackAgeTest, GroupsThatAreBeingFilledWaitThoughTheImageHasBeenDirtyForLong) {
  write_row(0);
  environment_.advance_ns(5 * kSecond);
  write_row(1);
  write_row(3);
  ASSERT_TRUE(bench_.engine().write_back_all(3 * kSecond).ok());
  EXPECT_EQ(rows_on_disks(), (std::set<std::uint64_t>{0, 1}));  // a group goes whole
  environment_.advance_ns(2 * kSecond);
  ASSERT_TRUE(bench_.engine().write_back_all(3 * kSecond).ok());
  EXPECT_EQ(rows_on_disks(), (std::set<std::uint64_t>{0, 1}));
  environment_.advance_ns(1 * kSecond);
  ASSERT_TRUE(bench_.engine().write_back_all(3 * kSecond).ok());
  EXPECT_EQ(rows_on_disks(), (std::set<std::uint64_t>{0, 1, 3}));
}

TEST_F(WriteBackAgeTest, WithoutAnAgeAllIsWritten) {
  write_row(0);
  environment_.advance_ns(5 * kSecond);
  write_row(3);
  ASSERT_TRUE(bench_.engine().write_back_all(0).ok());
  EXPECT_EQ(rows_on_disks(), (std::set<std::uint64_t>{0, 3}));
}

}  // namespace
}  // namespace mdfs::engine::testing
