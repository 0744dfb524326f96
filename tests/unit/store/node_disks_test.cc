// Disks for tree nodes alone: they get a copy of each node and no data, and are read before the others.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "device/disk_counters.h"
#include "store/pairs.h"
#include "store_fixture.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kDiskBytes = 16u << 20;

class NodeDisksTest : public ::testing::TestWithParam<std::vector<std::uint16_t>> {
 protected:
  NodeDisksTest() {
    FormatOptions options;
    options.weights = GetParam();
    EXPECT_OK(format_disks(disks_, environment_, options));
  }
  bool takes_data(unsigned disk) const { return GetParam()[disk] > 0; }
  bool has_node_disks() const { return std::count(GetParam().begin(), GetParam().end(), 0) > 0; }
  std::unique_ptr<Store> open() { return std::move(open_disks(disks_, environment_)).value(); }
  void write(Store& store, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t n = from; n < to; n += 50) {
      ASSERT_OK(store.transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
        for (std::uint64_t i = n; i < n + 50; ++i) {
          model_[item_key(i)] = value_of(300, i);
          transaction.put(item_key(i), model_[item_key(i)]);
        }
        return {};
      }));
    }
    ASSERT_OK(store.commit());
  }
  // Read of each disk to read all items once, nothing being in memory.
  std::vector<std::uint64_t> read_of_disks() {
    const std::unique_ptr<Store> store = open();
    std::vector<std::uint64_t> bytes;
    for (unsigned disk = 0; disk < disks_.size(); ++disk) bytes.push_back(store->counters(disk)->read_bytes);
    EXPECT_TRUE(read_all(*store) == model_);
    for (unsigned disk = 0; disk < disks_.size(); ++disk) bytes[disk] = store->counters(disk)->read_bytes - bytes[disk];
    return bytes;
  }

  SeededEnvironment environment_{5};
  const Disks disks_ = make_disks(GetParam().size(), kDiskBytes);
  Model model_;
};

TEST_P(NodeDisksTest, TheTreeIsReadFromThemAlone) {
  write(*open(), 0, 3000);
  const std::vector<std::uint64_t> read = read_of_disks();
  for (unsigned disk = 0; disk < disks_.size(); ++disk) {
    if (!takes_data(disk) || !has_node_disks())
      EXPECT_GT(read[disk], 100'000u) << disk;
    else
      EXPECT_EQ(read[disk], 0u) << disk;
  }
}

TEST_P(NodeDisksTest, DataLieOnTheOthersAndFillThem) {
  const std::unique_ptr<Store> store = open();
  std::uint64_t promised = 0, given = 0;
  const std::uint64_t available = store->space().available_blocks;
  for (unsigned disk = 0; disk < disks_.size(); ++disk)
    if (takes_data(disk)) promised += store->disk_info(disk).data_free_blocks;
  EXPECT_GE(promised, available);
  EXPECT_LE(promised * 7 / 10, available);
  for (unsigned disk = 0;; disk = (disk + 1) % static_cast<unsigned>(disks_.size())) {
    AllocationRequest request;
    request.disk = static_cast<std::uint16_t>(disk);
    request.blocks = 16;
    request.owner = 20;
    const Result<alloc::Run> run = store->allocate(request, nullptr);
    if (!run.ok()) break;
    EXPECT_TRUE(takes_data(run->disk));
    given += run->blocks;
  }
  EXPECT_GE(given, available * 8 / 10);
}

TEST_P(NodeDisksTest, EachOfTheDisksMayBeLost) {
  write(*open(), 0, 1000);
  for (std::size_t lost = 0; lost < disks_.size(); ++lost) {
    Disks others = clone_disks(disks_);
    others[lost].reset();
    StoreOptions options;
    options.degraded = true;
    auto store = open_disks(others, environment_, options);
    ASSERT_OK(store);
    EXPECT_TRUE(read_all(**store) == model_) << "without disk " << lost;
    ASSERT_OK((*store)->transact(Purpose::kNormal, [](Transaction& transaction) -> Status {
      transaction.put({16, 1, 0}, value_of(1, 1));
      return {};
    }));
    EXPECT_OK((*store)->commit());
  }
}

TEST_P(NodeDisksTest, ADiskThatJoinsForNodesAloneGetsACopyOfEachOldOne) {
  const std::unique_ptr<Store> store = open();
  write(*store, 0, 1000);
  std::vector<JoiningDisk> joining;
  joining.push_back({std::make_unique<device::MemoryDisk>("new", kDiskBytes), 0});
  const auto added = store->add_disks(std::move(joining));
  ASSERT_OK(added);
  EXPECT_EQ(store->disk_info(added->front()).weight, 0);
  EXPECT_FALSE(store->set_weight(added->front(), 3).ok());
  const std::uint64_t before = store->disk_info(added->front()).free_blocks;
  for (bool done = false; !done;) {
    const auto spread = store->spread_nodes();
    ASSERT_OK(spread);
    done = *spread;
  }
  ASSERT_OK(store->commit());
  EXPECT_GE(before - store->disk_info(added->front()).free_blocks, !has_node_disks() ? 4u * 20 : 0u)
      << "nodes on the new disk";
  EXPECT_TRUE(read_all(*store) == model_);
}

INSTANTIATE_TEST_SUITE_P(Volumes, NodeDisksTest,
                         ::testing::Values(std::vector<std::uint16_t>{0, 1, 1}, std::vector<std::uint16_t>{1, 0},
                                           std::vector<std::uint16_t>{1, 0, 1, 0, 2},
                                           std::vector<std::uint16_t>{1, 1, 1}));

TEST(NodeDisksFormatTest, OneDiskAtLeastTakesData) {
  SeededEnvironment environment(1);
  const Disks disks = make_disks(2, kDiskBytes);
  FormatOptions options;
  options.weights = {0, 0};
  const auto made = format_disks(disks, environment, options);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message().find("one at least takes data"), std::string::npos);
}

TEST(GroupsInTest, GroupsOfAnyNumbersOfBlocksAreAsManyAsCanBeMadeByHand) {
  EXPECT_EQ(groups_in({10, 10, 10}, 3), 10u);
  EXPECT_EQ(groups_in({1000, 10, 10}, 2), 20u);
  EXPECT_EQ(groups_in({1000, 10, 10}, 3), 10u);
  EXPECT_EQ(groups_in({1000, 1000, 10}, 3), 10u);
  EXPECT_EQ(groups_in({5}, 2), 0u);
  EXPECT_EQ(groups_in({}, 2), 0u);
  for (std::uint64_t a = 0; a < 8; ++a)
    for (std::uint64_t b = 0; b < 8; ++b) {
      const std::vector<std::uint64_t> three = {a, b, 5};
      EXPECT_EQ(groups_in(three, 2), pairs_in(three)) << a << " " << b;
    }
}

}  // namespace
}  // namespace mdfs::store
