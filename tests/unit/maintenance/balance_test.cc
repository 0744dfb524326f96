// Balancing of a volume in memory, step by step.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/balance.h"

#include <numeric>
#include <random>

#include "fixture.h"
#include "volume/operations.h"

namespace mdfs::maintenance {
namespace {

using namespace volume;  // NOLINT: the fixture and what it prints errors with

constexpr auto kKind = OperationKind::kBalance;
constexpr std::uint64_t kSide = 2048;
constexpr std::uint64_t kCellBlocks = 32;  // of the largest extent that moves

class BalanceTest : public VolumeTest {
 protected:
  BalanceTest() : VolumeTest(32u << 20) {}

  Ino stored_image(std::string_view name) {
    const Ino ino = make_raw_image(name, kSide);
    write(ino, 0, noise(kSide * kSide));
    EXPECT_OK(volume().sync());
    return ino;
  }
  static std::string noise(std::size_t size) {
    std::minstd_rand random(9);
    std::string bytes(size, 0);
    for (char& byte : bytes) byte = static_cast<char>(random() >> 8);
    return bytes;
  }
  unsigned add_disk() {
    disks_.push_back(std::make_unique<device::MemoryDisk>("joining", 32u << 20));
    std::vector<store::JoiningDisk> joining;
    joining.push_back({std::make_unique<test::BorrowedDisk>(*disks_.back()), 1});
    const auto added = volume().add_disks(std::move(joining));
    EXPECT_OK(added);
    return added.ok() ? added->front() : 0;
  }
  void start(unsigned disk, bool dry_run = false) {
    OperationRequest request{.kind = kKind, .dry_run = dry_run};
    request.parameters[0] = std::uint64_t{1} << disk;
    ASSERT_OK(volume().operations().start(request));
  }
  OperationRecord status() {
    const auto record = volume().operations().status(kKind);
    EXPECT_OK(record);
    return record.ok() ? *record : OperationRecord();
  }
  void run(unsigned most = 100'000) {
    while (most-- > 0 && status().running()) volume().operations().turn();
  }
  // Data blocks of each disk.
  std::vector<std::uint64_t> used() {
    EXPECT_OK(store().commit_freed());
    std::vector<std::uint64_t> blocks;
    for (unsigned disk = 0; disk < store().disk_count(); ++disk)
      blocks.push_back(store().disk_info(disk).data_blocks - store().disk_info(disk).data_free_blocks);
    return blocks;
  }
  void expect_equal_shares() {
    const std::vector<std::uint64_t> blocks = used();
    const std::uint64_t share = std::accumulate(blocks.begin(), blocks.end(), std::uint64_t{0}) / blocks.size();
    EXPECT_LE(blocks.back(), share + kCellBlocks);
    EXPECT_GE(blocks.back() + kCellBlocks, share);
  }
};

TEST_F(BalanceTest, ADiskThatJoinedGetsItsShareAndNoMore) {
  const Ino image = stored_image("image"), file = make_file("file");
  write(file, 0, noise(3u << 20));
  ASSERT_OK(volume().sync());
  const std::string before = read(image, 0, kSide * kSide), text = read(file, 0, 3u << 20);
  const unsigned disk = add_disk();
  const std::uint64_t block_size = store().block_size();
  start(disk);
  const std::uint64_t lacking = status().bytes_total;
  run();
  const OperationRecord record = status();
  EXPECT_EQ(record.state, MDFS_OPERATION_DONE) << record.reason;
  EXPECT_EQ(record.bytes_done, record.bytes_total);
  EXPECT_EQ(record.figures[Balance::kMovedBytes], record.bytes_done);
  EXPECT_EQ(record.figures[Balance::kNoRoom], 0u);
  EXPECT_GT(record.items_changed, 100u);
  EXPECT_LE(record.bytes_done, lacking) << "no more than it lacked";
  EXPECT_GE(record.bytes_done + kCellBlocks * block_size, lacking);
  expect_equal_shares();
  EXPECT_EQ(read(image, 0, kSide * kSide), before);
  EXPECT_EQ(read(file, 0, 3u << 20), text);
  mount();
  EXPECT_EQ(read(image, 0, kSide * kSide), before);
  EXPECT_EQ(read(file, 0, 3u << 20), text);
}

TEST_F(BalanceTest, ADryRunCountsAsMuchAsThenMoves) {
  stored_image("image");
  const unsigned disk = add_disk();
  const std::vector<std::uint64_t> before = used();
  start(disk, true);
  run();
  EXPECT_EQ(used(), before);
  const OperationRecord planned = status();
  EXPECT_GT(planned.figures[Balance::kMovedBytes], kSide * kSide / 8);
  start(disk);
  run();
  EXPECT_EQ(status().figures[Balance::kMovedBytes], planned.figures[Balance::kMovedBytes]);
  EXPECT_EQ(status().items_changed, planned.items_changed);
}

TEST_F(BalanceTest, AVolumeThatWasLeftMeanwhileEndsWithTheSameShares) {
  const Ino image = stored_image("image");
  stored_image("other");
  const std::string before = read(image, 0, kSide * kSide);
  start(add_disk());
  for (unsigned times = 0; times < 3; ++times) {
    run(3);
    ASSERT_TRUE(status().running());
    mount();
  }
  run();
  EXPECT_EQ(status().state, MDFS_OPERATION_DONE) << status().reason;
  expect_equal_shares();
  EXPECT_EQ(read(image, 0, kSide * kSide), before);
}

TEST_F(BalanceTest, ADiskWithItsShareGetsNothing) {
  stored_image("image");
  const unsigned disk = add_disk();
  start(disk);
  run();
  const std::vector<std::uint64_t> before = used();
  start(disk);
  run();
  EXPECT_EQ(status().state, MDFS_OPERATION_DONE);
  EXPECT_EQ(status().figures[Balance::kMovedBytes], 0u);
  EXPECT_EQ(used(), before);
}

TEST_F(BalanceTest, AnObjectWithDamagedRecordsIsToldOfAndTheOthersMove) {
  const Ino damaged = stored_image("damaged");
  const Ino good = stored_image("good");
  const unsigned disk = add_disk();
  ASSERT_OK(store().transact(store::Purpose::kNormal, [&](store::Transaction& transaction) -> Status {
    transaction.put({damaged, MDFS_KIND_EXTENTS, 0}, ByteVector(8, std::byte{0xee}));
    return {};
  }));
  mount();
  start(disk);
  run();
  const OperationRecord record = status();
  EXPECT_EQ(record.state, MDFS_OPERATION_DONE) << record.reason;
  EXPECT_EQ(record.items_failed, 1u);
  ASSERT_EQ(record.errors.size(), 1u);
  EXPECT_EQ(record.errors[0].object, damaged);
  EXPECT_GT(record.figures[Balance::kMovedBytes], 0u);
  EXPECT_EQ(read(good, 0, kSide * kSide), noise(kSide * kSide));
}

TEST_F(BalanceTest, NonsenseIsRefused) {
  EXPECT_ERROR(Errc::kInvalidArgument, volume().operations().start({.kind = kKind}));
  EXPECT_ERROR(Errc::kInvalidArgument, volume().operations().start({.kind = kKind, .parameters = {1u << 20}}));
  EXPECT_ERROR(Errc::kInvalidArgument, volume().operations().start({.kind = kKind, .parameters = {1, 2}}));
  EXPECT_ERROR(Errc::kNotSupported, volume().operations().start({.kind = kKind, .object = 7, .parameters = {1}}));
}

}  // namespace
}  // namespace mdfs::maintenance
