// Counters of disks: what went wrong is known after the next mount, until it is set to zero.
// SPDX-License-Identifier: Apache-2.0
#include "volume/disk_statistics.h"

#include "base/log.h"
#include "device/disk_counters.h"
#include "device/testing/faulty_disk.h"
#include "fixture.h"
#include "volume/operations.h"

namespace mdfs::volume {
namespace {

class DiskStatisticsTest : public VolumeTest {
 protected:
  DiskStatisticsTest() { EXPECT_OK(set_log_level("off")); }
  std::vector<DiskStatistic> now() { return volume().disk_statistics().now(); }
  // Damages the first block of a file of one disk, wherever it lies.
  void spoil(std::string_view bytes) {
    for (const auto& disk : disks_)
      for (std::uint64_t offset = 0; offset < disk->size_bytes(); offset += 4096) {
        ByteVector block(4096);
        disk->peek(offset, block);
        if (!as_text(block).starts_with(bytes)) continue;
        block[100] ^= std::byte{1};
        disk->poke(offset, block);
      }
  }
};

TEST_F(DiskStatisticsTest, RequestsAndBytesAreThoseOfTheMount) {
  const std::vector<DiskStatistic> before = now();
  ASSERT_EQ(before.size(), disks_.size());
  EXPECT_GT(before[0].reads, 0u);
  const Ino f = make_file("f");
  write(f, 0, std::string(500'000, 'x'));
  EXPECT_OK(volume().sync());
  EXPECT_OK(store().finalize());
  std::uint64_t written = 0;
  for (unsigned i = 0; i < disks_.size(); ++i) {
    const DiskStatistic disk = now()[i];
    EXPECT_GE(disk.flushes, before[i].flushes + 2);
    EXPECT_GT(disk.writes, before[i].writes);
    written += disk.written_bytes - before[i].written_bytes;
    EXPECT_EQ(disk.errors.read_errors + disk.errors.write_errors + disk.errors.flush_errors, 0u);
    EXPECT_EQ(disk.errors.checksum_errors + disk.errors.repaired, 0u);
  }
  EXPECT_GE(written, 500'000u);
  mount();
  EXPECT_LT(now()[0].writes, before[0].writes + 50);
}

TEST_F(DiskStatisticsTest, ErrorsAreKnownAfterTheNextMountUntilTheyAreSetToZero) {
  const Ino f = make_file("f");
  const std::string text = "the beginning of a file " + std::string(100'000, 'y');
  write(f, 0, text);
  EXPECT_OK(volume().sync());
  mount();
  spoil("the beginning of a file ");
  const auto found = volume().lookup(kRootIno, "f");
  ASSERT_OK(found);
  ByteVector bytes(4096);
  EXPECT_ERROR(Errc::kCorrupt, volume().read(found->ino, 0, bytes));
  const auto errors = [&] {
    std::uint64_t sum = 0;
    for (const DiskStatistic& disk : now()) sum += disk.errors.checksum_errors;
    return sum;
  };
  EXPECT_EQ(errors(), 1u);
  mount();
  EXPECT_EQ(errors(), 1u);
  const auto again = volume().lookup(kRootIno, "f");
  ASSERT_OK(again);
  EXPECT_ERROR(Errc::kCorrupt, volume().read(again->ino, 0, bytes));
  EXPECT_EQ(errors(), 2u);
  EXPECT_OK(volume().disk_statistics().reset());
  EXPECT_EQ(errors(), 0u);
  mount();
  EXPECT_EQ(errors(), 0u);
}

TEST_F(DiskStatisticsTest, RequestsThatFailAreCountedByTheirKind) {
  EXPECT_OK(volume().close());
  volume_.reset();
  device::FaultyDisk faulty(*disks_[0], {}, 1);
  auto doors = test::borrowed(disks_);
  doors[0] = &faulty;
  auto opened = test::open_volume(doors, test::quiet_options(), environment_);
  ASSERT_OK(opened);
  volume_ = std::move(*opened);
  device::Fault fault;
  fault.op = device::Op::kRead;
  fault.from = 128 << 10;
  fault.to = 256 << 10;
  faulty.add(fault);
  EXPECT_OK(volume().operations().start({}));
  while (volume().operations().turn().worked) {
  }
  EXPECT_EQ(now()[0].errors.read_errors, 1u);
  EXPECT_EQ(now()[1].errors.read_errors, 0u);
  fault.op = device::Op::kFlush;
  faulty.add(fault);
  make_file("g");
  EXPECT_OK(volume().sync());  // without the disk
  EXPECT_EQ(now()[0].errors.flush_errors, 1u);
  (void)volume().close().ok();
  volume_.reset();
}

TEST_F(DiskStatisticsTest, CopiesThatWereRepairedAreCounted) {
  EXPECT_OK(volume().operations().start({}));
  std::byte byte{};
  disks_[1]->peek(MDFS_LABEL_AREA + 40, {&byte, 1});
  byte ^= std::byte{1};
  disks_[1]->poke(MDFS_LABEL_AREA + 40, {&byte, 1});
  while (volume().operations().turn().worked) {
  }
  EXPECT_EQ(now()[1].errors.repaired, 1u);
  EXPECT_EQ(now()[1].errors.checksum_errors, 1u);
  EXPECT_EQ(now()[0].errors.repaired, 0u);
  mount();
  EXPECT_EQ(now()[1].errors.repaired, 1u);
}

// What one disk did is not the next one's that gets its number.
TEST_F(DiskStatisticsTest, ADiskThatComesCountsFromZeroAndOneThatGoesIsForgotten) {
  const auto join = [&](std::size_t which) {
    std::vector<store::JoiningDisk> joining;
    joining.push_back({std::make_unique<test::BorrowedDisk>(*disks_[which]), 1});
    return volume().add_disks(std::move(joining));
  };
  const std::size_t count = disks_.size();
  const auto last = static_cast<unsigned>(count);
  for (const char* name : {"first", "second"})
    disks_.push_back(std::make_unique<device::MemoryDisk>(name, disks_[0]->size_bytes()));
  ASSERT_OK(join(count));
  ASSERT_EQ(now().size(), count + 1);
  write(make_file("f"), 0, std::string(500'000, 'x'));
  EXPECT_OK(volume().sync());
  EXPECT_GT(now()[last].writes, 0u);
  store().note_checksum_error(last);
  EXPECT_EQ(now()[last].errors.checksum_errors, 1u);
  EXPECT_EQ(now()[last].errors.disk_uuid, store().disk_info(last).uuid);
  OperationRequest leave;
  leave.kind = OperationKind::kDrain;
  leave.parameters = {last, 0, 0, 0};
  EXPECT_OK(volume().operations().start(leave));
  while (volume().operations().turn().worked) {
  }
  ASSERT_EQ(store().disk_info(last).state, store::DiskState::kNone);
  EXPECT_EQ(now()[last].writes, 0u);
  EXPECT_EQ(now()[last].errors.checksum_errors, 0u);
  EXPECT_OK(volume().disk_statistics().save());
  const auto left = join(count + 1);
  ASSERT_OK(left);
  ASSERT_EQ(*left, std::vector<unsigned>{last});
  EXPECT_EQ(now()[last].errors.checksum_errors, 0u);
  EXPECT_EQ(now()[last].reads + now()[last].writes, store().counters(last)->reads + store().counters(last)->writes);
  EXPECT_LT(now()[last].written_bytes, 2u << 20) << "of this disk only";
  store().note_checksum_error(last);
  EXPECT_OK(volume().disk_statistics().reset());
  EXPECT_EQ(now()[last].errors.checksum_errors, 0u);
}

}  // namespace
}  // namespace mdfs::volume
