// Home blocks of rewritten extents.
// SPDX-License-Identifier: Apache-2.0
#include "engine/home_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fake_store.h"

namespace mdfs::engine {
namespace {

constexpr std::uint64_t kObject = 20, kOther = 21;

// Keeps so many places.
class KeepingStore final : public test::FakeStore {
 public:
  explicit KeepingStore(std::size_t most) : FakeStore(1, 1u << 20, 4096), most_(most) {}
  bool reserve_run(const store::Run& place) override { return kept.size() < most_ && kept.insert(place).second; }
  void release_run(const store::Run& place) override { kept.erase(place); }
  std::set<store::Run> kept;

 private:
  const std::size_t most_;
};

Home at(std::uint64_t extent, std::uint64_t block, std::uint64_t generation = 5) {
  return {extent, extent, {0, block, 4}, generation};
}

TEST(HomeBlocksTest, APlaceIsOverWithTheCommitAfterTheOneThatLeavesIt) {
  KeepingStore store(10);
  HomeBlocks places(store);
  places.note(kObject, {at(1, 100, 5), at(2, 104, 6)});
  EXPECT_TRUE(places.objects(5).empty());
  EXPECT_TRUE(places.take(kObject, 5, 10).empty());
  EXPECT_EQ(places.objects(6), std::vector{kObject});
  const std::vector<Home> over = places.take(kObject, 6, 10);
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].extent, 1u);
  EXPECT_EQ(places.count(), 2u) << "what has been taken counts";
  places.release(over[0]);
  EXPECT_EQ(places.count(), 1u);
  EXPECT_EQ(store.kept.size(), 1u);
}

TEST(HomeBlocksTest, TheFirstPlaceCountsUntilTheExtentIsHome) {
  KeepingStore store(10);
  HomeBlocks places(store);
  places.note(kObject, {at(1, 100)});
  places.note(kObject, {at(1, 200)});
  EXPECT_EQ(store.kept, (std::set{at(1, 100).run}));
  // Left again while somebody lets it return, who then finds that it must wait.
  const std::vector<Home> over = places.take(kObject, 6, 10);
  ASSERT_EQ(over.size(), 1u);
  places.note(kObject, {at(1, 300)});
  places.put_back(kObject, over[0]);
  EXPECT_EQ(store.kept, (std::set{at(1, 100).run}));
  EXPECT_EQ(places.count(), 1u);
}

TEST(HomeBlocksTest, WhatTheStoreDoesNotKeepIsNotRemembered) {
  KeepingStore store(2);
  HomeBlocks places(store);
  places.note(kObject, {at(1, 100), at(2, 104), at(3, 108)});
  places.note(kOther, {at(1, 200)});
  EXPECT_EQ(places.count(), 2u);
  EXPECT_EQ(places.objects(6), std::vector{kObject});
}

TEST(HomeBlocksTest, AnObjectThatIsGoneKeepsNothing) {
  KeepingStore store(10);
  HomeBlocks places(store);
  places.note(kObject, {at(1, 100), at(2, 104)});
  places.note(kOther, {at(1, 200)});
  places.forget(kObject);
  places.forget(kObject);
  EXPECT_EQ(store.kept, (std::set{at(1, 200).run}));
  EXPECT_EQ(places.count(), 1u);
}

TEST(HomeBlocksTest, SomeAreTakenAtATime) {
  KeepingStore store(100);
  HomeBlocks places(store);
  for (std::uint64_t extent = 0; extent < 25; ++extent) places.note(kObject, {at(extent, 100 + 4 * extent)});
  std::size_t taken = 0;
  while (!places.objects(6).empty()) {
    const std::vector<Home> some = places.take(kObject, 6, 10);
    EXPECT_LE(some.size(), 10u);
    taken += some.size();
    for (const Home& place : some) places.release(place);
  }
  EXPECT_EQ(taken, 25u);
  EXPECT_EQ(places.count(), 0u);
  EXPECT_TRUE(store.kept.empty());
}

}  // namespace
}  // namespace mdfs::engine
