// Tree nodes are read from their other copies where a disk does not answer.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "device/testing/faulty_disk.h"
#include "store_fixture.h"

namespace mdfs::store {
namespace {

using device::Fault;
using device::FaultKind;
using device::FaultyDisk;

constexpr std::size_t kDisks = 3;

class LateNodesTest : public ::testing::Test {
 protected:
  LateNodesTest() {
    EXPECT_OK(format_disks(disks_, environment_));
    auto store = open_disks(disks_, environment_);
    EXPECT_OK(store);
    for (std::uint64_t n = 0; n < 4000; n += 50) {
      EXPECT_OK((*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
        for (std::uint64_t i = n; i < n + 50; ++i) {
          model_[item_key(i)] = value_of(300, i);
          transaction.put(item_key(i), model_[item_key(i)]);
        }
        return {};
      }));
    }
    EXPECT_OK((*store)->commit());
  }
  std::unique_ptr<Store> open() {
    faulty_.clear();
    std::vector<std::unique_ptr<device::Disk>> owned;
    for (const auto& disk : disks_) {
      auto one = std::make_unique<FaultyDisk>(*disk, std::vector<Fault>{});
      faulty_.push_back(one.get());
      owned.push_back(std::move(one));
    }
    return std::move(Store::open(std::move(owned), {}, environment_)).value();
  }
  void hold(std::size_t disk) {
    faulty_[disk]->add({FaultKind::kStuck, device::Op::kRead, 0, UINT64_MAX, 0, Fault::kSticky});
  }
  void answer(std::size_t disk) {
    faulty_[disk]->work_again();
    faulty_[disk]->release();
  }

  SeededEnvironment environment_{5};
  const Disks disks_ = make_disks(kDisks, 16u << 20);
  Model model_;
  std::vector<FaultyDisk*> faulty_;
};

TEST_F(LateNodesTest, TheTreeIsReadWhileADiskDoesNotAnswer) {
  for (std::size_t late = 0; late < kDisks; ++late) {
    const std::unique_ptr<Store> store = open();
    hold(late);
    EXPECT_TRUE(read_all(*store) == model_);
    EXPECT_GT(faulty_[late]->stuck(), 0u);
    EXPECT_FALSE(store->dirty()) << "a copy that comes late is not a bad one";
    answer(late);
  }
}

TEST_F(LateNodesTest, ADiskThatAnswersLaterIsWaitedForWhereTheOtherCopiesAreBad) {
  const std::unique_ptr<Store> store = open();
  hold(0);
  for (std::size_t other = 1; other < kDisks; ++other)
    faulty_[other]->add({FaultKind::kError, device::Op::kRead, 0, UINT64_MAX, 0, Fault::kSticky});
  // Every node has two copies: those without one on disk 0 are lost for now.
  std::future<unsigned> read = std::async(std::launch::async, [&] {
    unsigned good = 0;
    for (std::uint64_t n = 0; n < 40; ++n) {
      const auto got = store->get(item_key(n * 100));
      if (got.ok() && *got == model_[item_key(n * 100)]) ++good;
    }
    return good;
  });
  while (read.wait_for(std::chrono::milliseconds(200)) == std::future_status::timeout) {
    EXPECT_GT(faulty_[0]->stuck(), 0u);
    faulty_[0]->release();
    answer(0);
  }
  EXPECT_GT(read.get(), 0u);
  for (FaultyDisk* disk : faulty_) disk->work_again();
  EXPECT_TRUE(read_all(*store) == model_);
}

TEST_F(LateNodesTest, TheUseOfZonesIsNotAskedOfADiskThatDoesNotAnswer) {
  const std::unique_ptr<Store> store = open();
  hold(1);
  EXPECT_TRUE(read_all(*store) == model_);
  const auto silent = store->zone_use(1, 0, 10);
  ASSERT_FALSE(silent.ok());
  EXPECT_EQ(silent.error().code, Errc::kBusy);
  EXPECT_TRUE(store->zone_use(0, 0, 10).ok());
  answer(1);
  EXPECT_TRUE(store->zone_use(1, 0, 10).ok());
}

TEST_F(LateNodesTest, ADeviceThatWasDetachedSinceItWasFoundCountsAsMissing) {
  Disks disks = clone_disks(disks_);
  disks[1]->resize(0);
  const auto store = open_disks(disks, environment_);
  ASSERT_OK(store);
  EXPECT_EQ((*store)->disk_info(1).state, DiskState::kMissing);
  EXPECT_TRUE(read_all(**store) == model_);
}

}  // namespace
}  // namespace mdfs::store
