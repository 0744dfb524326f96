// Room for the rebuild of lost disks.
// SPDX-License-Identifier: Apache-2.0
#include "store/spare.h"

#include <algorithm>
#include <bit>
#include <random>

#include "store_fixture.h"

namespace mdfs::store {
namespace {

std::vector<std::uint64_t> without(const std::vector<std::uint64_t>& sizes, unsigned lost) {
  std::vector<std::uint64_t> rest;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if ((lost >> i & 1) == 0) rest.push_back(sizes[i]);
  return rest;
}

constexpr std::uint64_t kNoMargin = 128u << 20;  // the size of a block of which a margin has none

TEST(SpareTest, WithoutAnySoManyDisksTheOthersHoldAllPairsAndWithTheLargestGoneNoneMore) {
  std::mt19937 random(26);
  for (int i = 0; i < 1000; ++i) {
    std::vector<std::uint64_t> sizes(3 + random() % 5);
    for (std::uint64_t& blocks : sizes) blocks = 1 + random() % (1u << random() % 10);
    std::uint64_t total = 0;
    for (const std::uint64_t blocks : sizes) total += blocks;
    for (unsigned disks = 1; disks + 2 <= sizes.size(); ++disks) {
      const std::uint64_t used = total - spare_blocks(sizes, disks, kNoMargin);
      std::uint64_t least = UINT64_MAX;
      for (unsigned lost = 0; lost < 1u << sizes.size(); ++lost)
        if (std::popcount(lost) == static_cast<int>(disks)) least = std::min(least, 2 * pairs_in(without(sizes, lost)));
      EXPECT_EQ(used, least);
    }
  }
}

TEST(SpareTest, NothingIsKeptForNoDiskOrWhereTwoDisksWouldNotBeLeft) {
  EXPECT_EQ(spare_blocks(std::vector<std::uint64_t>{10, 10, 10}, 0, kNoMargin), 0u);
  EXPECT_EQ(spare_blocks(std::vector<std::uint64_t>{10, 10, 10}, 1, kNoMargin), 10u);
  EXPECT_EQ(spare_blocks(std::vector<std::uint64_t>{10, 10, 10}, 2, kNoMargin), 0u);
  EXPECT_EQ(spare_blocks(std::vector<std::uint64_t>{10, 10}, 1, kNoMargin), 0u);
  EXPECT_EQ(spare_blocks(std::vector<std::uint64_t>{}, 1, kNoMargin), 0u);
}

TEST(SpareTest, OfEachDiskThatStaysAPartIsLeftForTheLastPieces) {
  EXPECT_EQ(rebuild_margin(32000, 4096), 1000u);
  EXPECT_EQ(rebuild_margin(3200, 4096), 256u) << "1 MiB";
  EXPECT_EQ(rebuild_margin(800, 4096), 100u);
  EXPECT_EQ(rebuild_margin(std::uint64_t{1} << 30, 4096), 16384u) << "64 MiB";
  // The others hold half of 3 x 31000 as pairs.
  EXPECT_EQ(spare_blocks(std::vector<std::uint64_t>{32000, 32000, 32000, 32000}, 1, 4096), 4 * 32000u - 3 * 31000u);
}

class SpareRoomTest : public testing::Test {
 protected:
  void SetUp() override {
    disks_ = make_disks(4, 8u << 20);
    ASSERT_OK(format_disks(disks_, environment_, {}));
    auto store = open_disks(disks_, environment_);
    ASSERT_OK(store);
    store_ = std::move(*store);
    ASSERT_OK(store_->commit());
  }
  // As many as can be reserved.
  std::uint64_t reservable(Purpose purpose) {
    std::uint64_t blocks = 0;
    std::vector<Reservation> kept;
    for (std::uint64_t step = 4096; step > 0; step /= 2)
      for (;;) {
        auto more = store_->reserve(step, purpose);
        if (!more.ok()) break;
        kept.push_back(std::move(*more));
        blocks += step;
      }
    return blocks;
  }

  SeededEnvironment environment_{5};
  Disks disks_;
  std::unique_ptr<Store> store_;
};

TEST_F(SpareRoomTest, OrdinaryDataLeaveTheRoomAloneAndMovedDataMayUseIt) {
  const std::uint64_t all = reservable(Purpose::kNormal), available = store_->space().available_blocks;
  store_->set_spare_disks(1);
  const SpaceInfo space = store_->space();
  EXPECT_EQ(space.spare_disks, 1u);
  EXPECT_GE(space.spare_blocks, space.total_blocks / 4);
  EXPECT_LE(space.spare_blocks, space.total_blocks / 4 * 11 / 8);
  EXPECT_EQ(reservable(Purpose::kNormal), all - space.spare_blocks);
  EXPECT_EQ(space.available_blocks, available - space.spare_blocks);
  EXPECT_LE(space.available_pairs, space.available_blocks / 2);
  EXPECT_EQ(reservable(Purpose::kMoving), all);
  const auto refused = store_->reserve(all, Purpose::kNormal);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().where.find("kept for the rebuild of a lost disk"), std::string::npos);
  store_->set_spare_disks(0);
  EXPECT_EQ(reservable(Purpose::kNormal), all);
}

TEST_F(SpareRoomTest, TheRoomOfALostDiskStaysFreeUntilItsPiecesAreMadeAnew) {
  store_->set_spare_disks(1);
  store_.reset();
  Disks fewer;
  for (std::size_t i = 0; i < 3; ++i) fewer.push_back(disks_[i]->clone());
  auto opened = open_disks(fewer, environment_);
  ASSERT_OK(opened);
  store_ = std::move(*opened);
  ASSERT_OK(store_->commit());
  const std::uint64_t all = reservable(Purpose::kNormal);
  store_->set_spare_disks(1);
  const SpaceInfo before = store_->space();
  EXPECT_FALSE(before.is_rebuilt);
  EXPECT_GE(before.spare_blocks, before.total_blocks / 3);
  EXPECT_EQ(reservable(Purpose::kNormal), all - before.spare_blocks);
  EXPECT_EQ(reservable(Purpose::kMoving), all);
  store_->note_rebuilt(1u << 3);
  EXPECT_TRUE(store_->space().is_rebuilt);
  EXPECT_EQ(store_->space().spare_blocks, 0u);
  EXPECT_EQ(reservable(Purpose::kNormal), all);
  store_->set_spare_disks(2);
  EXPECT_GE(store_->space().spare_blocks, store_->space().total_blocks / 3) << "for one more";
}

TEST_F(SpareRoomTest, ADiskThatLeavesOrIsReplacedLeavesTheRoomOfTheNextOne) {
  store_->set_spare_disks(1);
  ASSERT_OK(store_->set_draining(3, true, nullptr));
  NodePosition at;
  for (;;) {
    const auto moved = store_->move_nodes_off(3, at);
    ASSERT_OK(moved);
    if (*moved) break;
  }
  ASSERT_OK(store_->remove_disk(3));
  const SpaceInfo space = store_->space();
  EXPECT_TRUE(space.is_rebuilt);
  EXPECT_GE(space.spare_blocks, space.total_blocks / 3);
}

TEST_F(SpareRoomTest, ADiskIsNotDrainedIntoTheRoom) {
  store_->set_spare_disks(1);
  const SpaceInfo space = store_->space();
  // Half of what one disk holds is more than two of the others may hold beside the room of one.
  AllocationRequest request;
  request.blocks = 64;
  std::uint64_t taken = 0;
  for (std::uint16_t disk = 0; disk < 4; ++disk)
    for (std::uint64_t i = 0; i < space.total_blocks / 4 * 3 / 5 / request.blocks; ++i) {
      request.disk = disk;
      const auto run = store_->allocate(request, nullptr);
      ASSERT_TRUE(run.ok());
      ASSERT_OK(store_->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
        transaction.publish(*run);
        return {};
      }));
      taken += request.blocks;
    }
  ASSERT_OK(store_->commit());
  ASSERT_LT(taken, space.total_blocks - space.spare_blocks);
  std::uint64_t missing = 0;
  const Status refused = store_->set_draining(3, true, &missing);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().where.find("kept for the rebuild of a lost disk"), std::string::npos);
  EXPECT_GT(missing, 0u);
  store_->set_spare_disks(0);
  EXPECT_OK(store_->set_draining(3, true, nullptr));
}

}  // namespace
}  // namespace mdfs::store
