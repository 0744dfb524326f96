// Space of a volume: nothing leaks, nothing is reused too early, a full volume can be emptied.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>
#include <set>

#include "store_fixture.h"

namespace mdfs::store {
namespace {

struct Shape {
  std::size_t disks;
  std::uint32_t block_size;
};

class SpaceTest : public testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    // Room for zones of twelve blocks, which leave no end behind runs of three.
    disks_ = make_disks(GetParam().disks, (4u << 20) + 2 * MDFS_LABEL_AREA);
    FormatOptions format;
    format.block_size = GetParam().block_size;
    ASSERT_OK(format_disks(disks_, environment_, format));
    reopen();
    free_at_first_ = disk_free();
  }
  void reopen() {
    store_.reset();
    auto store = open_disks(disks_, environment_);
    ASSERT_OK(store);
    store_ = std::move(*store);
  }
  std::uint64_t disk_free() const {
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < store_->disk_count(); ++i) sum += store_->disk_info(i).free_blocks;
    return sum;
  }
  Status put(const Key& key, std::size_t bytes, Purpose purpose = Purpose::kNormal) {
    return store_->transact(purpose, [&](Transaction& transaction) -> Status {
      transaction.put(key, value_of(bytes, key.offset));
      return {};
    });
  }
  Status erase(const Key& key) {
    return store_->transact(Purpose::kFreeing, [&](Transaction& transaction) -> Status {
      transaction.erase(key);
      return {};
    });
  }
  Status publish(const alloc::Run& run) {
    return store_->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
      transaction.publish(run);
      return {};
    });
  }
  Status free(const alloc::Run& run) {
    return store_->transact(Purpose::kFreeing, [&](Transaction& transaction) -> Status {
      transaction.free(run);
      return {};
    });
  }
  AllocationRequest request(std::uint32_t blocks, std::uint64_t owner = 16) {
    AllocationRequest request;
    request.disk = static_cast<std::uint16_t>(turn_++ % GetParam().disks);
    request.blocks = blocks;
    request.owner = owner;
    return request;
  }

  SeededEnvironment environment_{21};
  Disks disks_;
  std::unique_ptr<Store> store_;
  std::uint64_t free_at_first_ = 0;
  std::size_t turn_ = 0;
};

TEST_P(SpaceTest, NothingLeaksOverThousandsOfCycles) {
  std::mt19937_64 random(1);
  std::vector<alloc::Run> held;
  for (int i = 0; i < 3000; ++i) {
    const auto step = [&](Transaction& transaction) -> Status {
      transaction.put(item_key(random() % 300), value_of(random() % 900, random()));
      transaction.erase(item_key(random() % 300));
      if (held.size() < 20) {
        MDFS_TRY_ASSIGN(const alloc::Run run, store_->allocate(request(1 + random() % 4), nullptr));
        transaction.publish(run);
        held.push_back(run);
      } else {
        transaction.free(held.back());
        held.pop_back();
      }
      return {};
    };
    ASSERT_OK(store_->transact(Purpose::kNormal, step));
    if (i % 7 == 0 || i % 500 == 0) {
      ASSERT_OK(store_->commit());
    }
    if (i % 500 == 0) reopen();
  }
  for (std::uint64_t n = 0; n < 300; ++n) ASSERT_OK(erase(item_key(n)));
  ASSERT_OK(store_->commit());
  std::uint64_t blocks = 0;
  for (const alloc::Run& run : held) blocks += run.blocks;
  EXPECT_EQ(disk_free() + blocks, free_at_first_);
}

TEST_P(SpaceTest, WhatIsAllocatedAndNeverPublishedIsFreeAfterACrash) {
  for (int i = 0; i < 20; ++i) ASSERT_OK(store_->allocate(request(2), nullptr));
  ASSERT_OK(put({20, 1, 1}, 10));
  ASSERT_OK(store_->commit());
  reopen();
  EXPECT_EQ(disk_free(), free_at_first_);
}

TEST_P(SpaceTest, AFullVolumeKeepsItsItemsAndCanBeEmptied) {
  for (int round = 0; round < 3; ++round) {
    Model model;
    Status status;
    for (std::uint64_t n = 0;; ++n) {
      ASSERT_LT(n, 100000u);
      const Key key{20, 1, n};
      status = put(key, 3000);
      if (!status.ok()) break;
      model[key] = value_of(3000, n);
      if (n % 11 == 0) {
        ASSERT_OK(store_->commit());
      }
    }
    EXPECT_EQ(status.error().code, Errc::kNoSpace);
    EXPECT_TRUE(read_all(*store_) == model);
    ASSERT_OK(store_->commit());
    reopen();
    ASSERT_TRUE(read_all(*store_) == model);
    // Erasing from the middle outwards, one by one, without a commit in between.
    std::vector<Key> keys;
    for (const auto& [key, value] : model) keys.push_back(key);
    std::rotate(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(keys.size() / 2), keys.end());
    for (const Key& key : keys) ASSERT_OK(erase(key));
    ASSERT_OK(store_->commit());
    EXPECT_EQ(disk_free(), free_at_first_);
  }
}

TEST_P(SpaceTest, AVolumeFullOfDataCanBeEmptiedAndFilledAgain) {
  for (int round = 0; round < 3; ++round) {
    std::vector<alloc::Run> runs;
    std::uint64_t taken = 0;
    const store::SpaceInfo before = store_->space();
    EXPECT_EQ(before.free_blocks, before.total_blocks);
    EXPECT_LT(before.available_blocks, before.free_blocks);
    for (;;) {
      const auto run = store_->allocate(request(3, 16 + runs.size() / 50), nullptr);
      if (!run.ok()) {
        EXPECT_EQ(run.error().code, Errc::kNoSpace);
        break;
      }
      ASSERT_OK(publish(*run));
      runs.push_back(*run);
      taken += run->blocks;
    }
    ASSERT_OK(store_->commit());
    // All that was said to be available, but for ends of holes that are shorter than three blocks; and no block twice.
    EXPECT_GE(taken + 32, before.available_blocks);
    EXPECT_GE(taken * 100, before.total_blocks * 85);
    EXPECT_EQ(store_->space().free_blocks + taken, before.total_blocks);
    std::set<std::pair<unsigned, std::uint64_t>> blocks;
    for (const alloc::Run& run : runs)
      for (std::uint64_t block = run.block; block < run.block + run.blocks; ++block)
        EXPECT_TRUE(blocks.emplace(run.disk, block).second);
    EXPECT_OK(put({30, 1, 1}, 10, Purpose::kFreeing));
    EXPECT_OK(erase({30, 1, 1}));
    for (const alloc::Run& run : runs) ASSERT_OK(free(run));
    ASSERT_OK(store_->commit());
    EXPECT_EQ(disk_free(), free_at_first_);
  }
}

TEST_P(SpaceTest, AFreedBlockIsNotReusedBeforeTwoCommits) {
  std::vector<alloc::Run> runs;
  for (;;) {
    const auto run = store_->allocate(request(1), nullptr);
    if (!run.ok()) break;
    ASSERT_OK(publish(*run));
    runs.push_back(*run);
  }
  ASSERT_OK(store_->commit());
  ASSERT_OK(store_->commit());
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t before = store_->generation();
    ASSERT_OK(free(runs[static_cast<std::size_t>(i)]));
    const auto again = store_->allocate(request(1), nullptr);
    ASSERT_OK(again);
    EXPECT_GE(store_->generation(), before + 2);
    ASSERT_OK(publish(*again));
  }
}

TEST_P(SpaceTest, ReservationsAreKeptWhenOthersAskForMore) {
  const std::uint64_t half = store_->space().available_blocks / 2;
  auto reserved = store_->reserve(half);
  ASSERT_OK(reserved);
  EXPECT_EQ(store_->reserve(store_->space().available_blocks + 1).error().code, Errc::kNoSpace);
  std::uint64_t others = 0;
  for (;;) {
    const auto run = store_->allocate(request(1, 17), nullptr);
    if (!run.ok()) break;
    others += run->blocks;
  }
  EXPECT_GE(others + 2, half);
  std::uint64_t own = 0;
  while (reserved->blocks() > 0) {
    const auto run = store_->allocate(request(1, 18), &*reserved);
    ASSERT_OK(run);
    own += run->blocks;
  }
  EXPECT_EQ(own, half);
  EXPECT_EQ(store_->space().available_blocks, 0u);
}

TEST_P(SpaceTest, ReservedSpaceComesBackWithTheReservation) {
  const std::uint64_t before = store_->space().available_blocks;
  {
    auto reserved = store_->reserve(before);
    ASSERT_OK(reserved);
    EXPECT_EQ(store_->space().available_blocks, 0u);
    Reservation moved = std::move(*reserved);
    EXPECT_EQ(moved.blocks(), before);
  }
  EXPECT_EQ(store_->space().available_blocks, before);
}

TEST_P(SpaceTest, AbandonedBlocksAreFreeAtOnce) {
  const std::uint64_t before = store_->space().available_blocks;
  const auto run = store_->allocate(request(4), nullptr);
  ASSERT_OK(run);
  EXPECT_EQ(store_->space().available_blocks, before - 4);
  store_->abandon(*run);
  EXPECT_EQ(store_->space().available_blocks, before);
}

TEST_P(SpaceTest, PublishingOrFreeingTheWrongBlocksIsRefusedAndChangesNothing) {
  const auto run = store_->allocate(request(2), nullptr);
  ASSERT_OK(run);
  EXPECT_EQ(free(*run).error().code, Errc::kCorrupt);
  ASSERT_OK(publish(*run));
  EXPECT_EQ(publish(*run).error().code, Errc::kCorrupt);
  EXPECT_EQ(free({run->disk, run->block, 3}).error().code, Errc::kCorrupt);
  EXPECT_EQ(free({run->disk, 0, 1}).error().code, Errc::kCorrupt);
  EXPECT_EQ(free({run->disk, UINT64_MAX, 1}).error().code, Errc::kCorrupt);
  EXPECT_EQ(free({77, run->block, 1}).error().code, Errc::kCorrupt);
  const auto twice = [&](Transaction& transaction) -> Status {
    transaction.put({20, 1, 1}, value_of(3, 3));
    transaction.free(*run);
    transaction.free({run->disk, run->block + 1, 1});
    return {};
  };
  EXPECT_EQ(store_->transact(Purpose::kFreeing, twice).error().code, Errc::kCorrupt);
  EXPECT_TRUE(read_all(*store_).empty());
  EXPECT_OK(free(*run));
  EXPECT_OK(store_->commit());
  EXPECT_EQ(disk_free(), free_at_first_);
}

// As records of volumes name them that older versions have written.
TEST(OldRunsTest, ARunOnTwoBitmapPagesIsFreedAndItsBlocksAreUsedAgain) {
  SeededEnvironment environment(22);
  const Disks disks = make_disks(1, (std::uint64_t{MDFS_BITS_PER_PAGE} + 4096) * 4096);
  ASSERT_OK(format_disks(disks, environment));
  auto store = open_disks(disks, environment);
  ASSERT_OK(store);
  constexpr std::uint64_t kMeet = MDFS_BITS_PER_PAGE;
  const std::uint64_t free_at_first = (*store)->disk_info(0).free_blocks;
  const auto take = [&](std::uint64_t block, std::uint32_t blocks) {
    AllocationRequest request;
    request.blocks = blocks;
    request.at_block = block;
    const auto run = (*store)->allocate(request, nullptr);
    ASSERT_OK(run);
    ASSERT_OK((*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
      transaction.publish(*run);
      return {};
    }));
  };
  for (int round = 0; round < 2; ++round) {
    take(kMeet - 7, 7);
    take(kMeet, 9);
    ASSERT_OK((*store)->commit());
    ASSERT_OK((*store)->transact(Purpose::kFreeing, [&](Transaction& transaction) -> Status {
      transaction.free({0, kMeet - 7, 16});
      return {};
    }));
    for (int i = 0; i < 8; ++i) {
      ASSERT_OK((*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
        transaction.put({20, 1, 1}, value_of(10, std::uint64_t(i)));
        return {};
      }));
      ASSERT_OK((*store)->commit());
    }
    store->reset();
    store = open_disks(disks, environment);
    ASSERT_OK(store);
    EXPECT_GE((*store)->disk_info(0).free_blocks + 2, free_at_first);  // the first item has taken a node
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, SpaceTest,
                         testing::Values(Shape{1, 4096}, Shape{2, 4096}, Shape{4, 4096}, Shape{2, 16384}));

TEST(FallbackAllocationTest, AFullDiskFallsBackToAnotherOnlyIfItMay) {
  SeededEnvironment environment(4);
  const Disks disks = make_disks(2, 4u << 20);
  ASSERT_OK(format_disks(disks, environment));
  auto store = open_disks(disks, environment);
  ASSERT_OK(store);
  AllocationRequest request;
  request.blocks = 1;
  request.owner = 16;
  request.may_fall_back = false;
  auto run = (*store)->allocate(request, nullptr);
  for (; run.ok(); run = (*store)->allocate(request, nullptr)) EXPECT_EQ(run->disk, 0);
  EXPECT_EQ(run.error().code, Errc::kNoSpace);
  request.may_fall_back = true;
  run = (*store)->allocate(request, nullptr);
  ASSERT_OK(run);
  EXPECT_EQ(run->disk, 1);
}

}  // namespace
}  // namespace mdfs::store
