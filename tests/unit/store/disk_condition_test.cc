// Disks that are truncated, or whose file is deleted, while the store is open.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/aligned_buffer.h"
#include "base/log.h"
#include "device/disk.h"
#include "format/layout.h"
#include "store_fixture.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kDiskBytes = 8u << 20;
constexpr std::uint64_t kLabelBytes = MDFS_LABEL_AREA;

// These tests do damage on purpose; what the store says about it is not of interest.
const Status quiet = set_log_level("off");

Status put(Store& store, std::uint64_t n) {
  return store.transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
    transaction.put({20, 1, n}, value_of(600, n));
    return {};
  });
}

class DiskConditionTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(format_disks(disks_, environment_));
    auto store = open_disks(disks_, environment_);
    ASSERT_OK(store);
    store_ = std::move(*store);
    ASSERT_OK(put(*store_, 1));
    ASSERT_OK(store_->commit());
  }

  // Commits leave the disk out, and everything is readable.
  void expect_left_out(unsigned disk) {
    ASSERT_OK(put(*store_, 2));
    ASSERT_OK(store_->commit());
    EXPECT_FALSE(store_->read_only());
    for (unsigned i = 0; i < store_->disk_count(); ++i) EXPECT_EQ(store_->disk_info(i).is_out, i == disk) << i;
    ASSERT_OK(put(*store_, 3));
    ASSERT_OK(store_->commit());
    for (const std::uint64_t n : {1, 2, 3}) EXPECT_OK(store_->get({20, 1, n}));
    const auto run = store_->allocate({.disk = static_cast<std::uint16_t>(disk), .blocks = 1, .owner = 16}, nullptr);
    ASSERT_OK(run);
    EXPECT_NE(run->disk, disk);
  }

  device::MemoryDisk& cut() { return *disks_[2]; }

  SeededEnvironment environment_{1};
  Disks disks_ = make_disks(3, kDiskBytes);
  std::unique_ptr<Store> store_;
};

TEST_F(DiskConditionTest, NoCommitBeginsWithoutRoomForItBelowAFileWithHoles) {
  ASSERT_OK(put(*store_, 2));
  cut().set_room_bytes(1u << 20);
  for (unsigned i = 0; i < 3; ++i) {
    const Status committed = store_->commit();
    ASSERT_FALSE(committed.ok());
    EXPECT_EQ(committed.error().code, Errc::kNoSpace);
    EXPECT_NE(committed.error().where.find("the filesystem or pool of disk2 has 1 MiB left"), std::string::npos)
        << committed.error().where;
  }
  EXPECT_FALSE(store_->read_only());
  EXPECT_TRUE(store_->dirty());
  ASSERT_OK(put(*store_, 3));
  cut().set_room_bytes(1u << 30);
  EXPECT_OK(store_->commit());
  store_ = std::move(*open_disks(disks_, environment_));
  for (const std::uint64_t n : {1, 2, 3}) EXPECT_TRUE(store_->get({20, 1, n})->has_value()) << n;
}

TEST_F(DiskConditionTest, ADiskThatWasTruncatedIsLeftOut) {
  cut().resize(kDiskBytes / 2);
  expect_left_out(2);
  EXPECT_EQ(store_->disk_info(2).state, DiskState::kFailed);
}

TEST_F(DiskConditionTest, ATruncatedDiskThatIsLongAgainHasFailedAndKeepsItsSmallestSize) {
  for (const std::uint64_t bytes : {kDiskBytes / 2, kDiskBytes / 4, kDiskBytes, 2 * kDiskBytes}) {
    cut().resize(bytes);
    EXPECT_FALSE(store_->examine_disks().ok());
  }
  const DiskInfo info = store_->disk_info(2);
  EXPECT_EQ(info.state, DiskState::kFailed);
  EXPECT_EQ(info.device_bytes, kDiskBytes / 4);
  expect_left_out(2);
  EXPECT_EQ(store_->disk_info(2).device_bytes, kDiskBytes / 4);
}

TEST_F(DiskConditionTest, NoWriteReachesATruncatedDiskAndReadsDo) {
  const std::uint64_t block = store_->allocate({.disk = 2, .blocks = 1, .owner = 16}, nullptr).value().block;
  AlignedBuffer bytes(store_->block_size());
  std::fill(bytes.bytes().begin(), bytes.bytes().end(), std::byte{7});
  ASSERT_OK(device::write(store_->disk(2), block * store_->block_size(), bytes.bytes()));
  cut().resize(kDiskBytes - kLabelBytes);
  const std::uint64_t before = cut().digest();
  EXPECT_FALSE(device::write(store_->disk(2), block * store_->block_size(), bytes.bytes()).ok());
  EXPECT_FALSE(device::flush(store_->disk(2)).ok());
  EXPECT_OK(device::read(store_->disk(2), block * store_->block_size(), bytes.bytes()));
  EXPECT_EQ(bytes.bytes()[0], std::byte{7});
  ASSERT_OK(put(*store_, 2));
  EXPECT_OK(store_->commit());
  EXPECT_EQ(cut().digest(), before);
}

TEST_F(DiskConditionTest, AFileThatWasDeletedIsLeftOut) {
  cut().set_deleted(true);
  EXPECT_EQ(store_->disk_info(2).state, DiskState::kHealthy) << "the condition was not examined yet";
  EXPECT_FALSE(store_->examine_disks().ok());
  EXPECT_EQ(store_->disk_info(2).state, DiskState::kDeleted);
  EXPECT_FALSE(store_->disk_info(2).is_lost());
  expect_left_out(2);
  EXPECT_EQ(store_->disk_info(2).state, DiskState::kDeleted);
}

// The way to rescue it: nothing changes on a disk any more once its loss is known.
TEST_F(DiskConditionTest, ACopyOfADeletedFileHoldsEverythingAcknowledged) {
  cut().set_deleted(true);
  expect_left_out(2);
  store_.reset();
  cut().set_deleted(false);
  auto store = open_disks(disks_, environment_);
  ASSERT_OK(store);
  EXPECT_EQ((*store)->disk_info(2).state, DiskState::kOut);
  for (const std::uint64_t n : {1, 2, 3}) {
    const auto got = (*store)->get({20, 1, n});
    ASSERT_OK(got);
    EXPECT_TRUE(*got) << n;
  }
  EXPECT_OK((*store)->commit());
}

TEST_F(DiskConditionTest, TheRestOfTheDeviceMayGoOnceTheVolumeHasASmallerDisk) {
  const std::uint64_t half = kDiskBytes / 2 / store_->block_size();
  ASSERT_OK(store_->set_disk_end(2, half, nullptr));
  ASSERT_NO_FATAL_FAILURE(move_all_nodes_off(*store_, 2));
  ASSERT_OK(store_->resize_disk(2, half));
  cut().resize(kDiskBytes / 2);
  ASSERT_OK(put(*store_, 2));
  EXPECT_OK(store_->commit());
  EXPECT_OK(store_->examine_disks());
  EXPECT_EQ(store_->disk_info(2).state, DiskState::kHealthy);
  cut().resize(kDiskBytes / 2 - kLabelBytes);
  expect_left_out(2);
}

TEST_F(DiskConditionTest, ADiskThatWasMadeLargerNeedsItsNewSize) {
  cut().resize(2 * kDiskBytes);
  ASSERT_OK(store_->commit());
  ASSERT_OK(store_->resize_disk(2, 2 * kDiskBytes / store_->block_size()));
  cut().resize(kDiskBytes);
  expect_left_out(2);
}

TEST_F(DiskConditionTest, ADiskThatJoinedIsWatchedToo) {
  device::MemoryDisk joined("joined", kDiskBytes);
  JoiningDisk joining;
  joining.disk = std::make_unique<BorrowedDisk>(joined);
  std::vector<JoiningDisk> all;
  all.push_back(std::move(joining));
  ASSERT_OK(store_->add_disks(std::move(all)));
  joined.resize(kDiskBytes / 2);
  expect_left_out(3);
  store_.reset();
}

}  // namespace
}  // namespace mdfs::store
