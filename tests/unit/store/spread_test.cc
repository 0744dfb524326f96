// Copies of tree nodes after disks have come: on as many disks as those of new nodes.
// SPDX-License-Identifier: Apache-2.0
#include "store_fixture.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kDiskBytes = 16u << 20;
constexpr std::uint64_t kItems = 4000;

class SpreadTest : public ::testing::Test {
 protected:
  SpreadTest() : disks_(make_disks(4, kDiskBytes)) {}

  void format(std::size_t disks) {
    std::vector<device::Disk*> members;
    for (std::size_t i = 0; i < disks; ++i) members.push_back(disks_[i].get());
    ASSERT_OK(format_volume(members, {}, environment_));
    members_ = disks;
  }
  Result<std::unique_ptr<Store>> open(std::size_t missing = SIZE_MAX) {
    std::vector<std::unique_ptr<device::Disk>> borrowed;
    for (std::size_t i = 0; i < members_; ++i)
      if (i != missing) borrowed.push_back(std::make_unique<BorrowedDisk>(*disks_[i]));
    return Store::open(std::move(borrowed), {}, environment_);
  }
  static void fill(Store& store, std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t n = first; n < first + count; ++n)
      ASSERT_OK(store.transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
        transaction.put(item_key(n), value_of(200, n));
        return {};
      }));
    ASSERT_OK(store.commit());
  }
  void add(Store& store, std::size_t count) {
    std::vector<JoiningDisk> joining;
    for (std::size_t i = 0; i < count; ++i)
      joining.push_back({std::make_unique<BorrowedDisk>(*disks_[members_ + i]), 1});
    ASSERT_OK(store.add_disks(std::move(joining)));
    members_ += count;
  }
  static void spread(Store& store) {
    for (unsigned calls = 0; store.wants_spread(); ++calls) {
      ASSERT_LT(calls, 1000u) << "it never ends";
      ASSERT_OK(store.spread_nodes());
    }
  }
  // Every item is there while any one of the disks is missing.
  void expect_all_without_any(std::uint64_t items) {
    for (std::size_t missing = 0; missing < members_; ++missing) {
      const Disks kept = clone_disks(disks_);
      StoreOptions options;
      options.read_only = true;
      std::vector<std::unique_ptr<device::Disk>> borrowed;
      for (std::size_t i = 0; i < members_; ++i)
        if (i != missing) borrowed.push_back(std::make_unique<BorrowedDisk>(*kept[i]));
      const auto store = Store::open(std::move(borrowed), options, environment_);
      ASSERT_OK(store) << "without disk " << missing;
      EXPECT_EQ(read_all(**store).size(), items) << "without disk " << missing;
    }
  }

  SeededEnvironment environment_{5};
  Disks disks_;
  std::size_t members_ = 0;
};

TEST_F(SpreadTest, NodesOfOneDiskGetCopiesOnTheDisksThatCome) {
  format(1);
  auto store = open();
  ASSERT_OK(store);
  fill(**store, 0, kItems);
  add(**store, 2);
  EXPECT_TRUE((*store)->wants_spread());
  spread(**store);
  store->reset();
  expect_all_without_any(kItems);
}

TEST_F(SpreadTest, AnInterruptedSpreadGoesOnAtTheNextMount) {
  format(1);
  auto store = open();
  ASSERT_OK(store);
  fill(**store, 0, kItems);
  add(**store, 2);
  ASSERT_OK((*store)->spread_nodes());
  store->reset();
  store = open();
  ASSERT_OK(store);
  EXPECT_TRUE((*store)->wants_spread());
  fill(**store, kItems, 1);
  spread(**store);
  store->reset();
  expect_all_without_any(kItems + 1);
}

TEST_F(SpreadTest, NodesWithTwoCopiesGetAThirdOne) {
  format(2);
  auto store = open();
  ASSERT_OK(store);
  fill(**store, 0, kItems);
  add(**store, 2);
  spread(**store);
  const std::uint64_t used = (*store)->used_blocks(2) + (*store)->used_blocks(3);
  EXPECT_GT(used * (*store)->block_size(), kItems * 200 / 2) << "the disks that came hold copies of old nodes";
  store->reset();
  expect_all_without_any(kItems);
}

TEST_F(SpreadTest, NothingIsWrittenWhereCopiesLieWell) {
  format(3);
  auto store = open();
  ASSERT_OK(store);
  fill(**store, 0, kItems);
  const std::uint64_t generation = (*store)->generation();
  spread(**store);
  EXPECT_EQ((*store)->generation(), generation);
  EXPECT_FALSE((*store)->wants_spread());
}

TEST_F(SpreadTest, ADiskThatComesWhileNodesAreSpreadIsNotForgotten) {
  format(1);
  auto store = open();
  ASSERT_OK(store);
  fill(**store, 0, kItems);
  add(**store, 1);
  ASSERT_OK((*store)->spread_nodes());
  add(**store, 1);
  spread(**store);
  store->reset();
  expect_all_without_any(kItems);
}

}  // namespace
}  // namespace mdfs::store
