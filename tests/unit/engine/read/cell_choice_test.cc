// Which piece of each block of a file is read, of files with copies.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "device/disk_counters.h"
#include "device/hedging.h"
#include "engine_fixture.h"
#include "format/cell_copies.h"

namespace mdfs::engine::testing {
namespace {

constexpr unsigned kDisks = 4;
constexpr std::size_t kBytes = 4u << 20;
constexpr std::uint64_t kNodes = 128u << 10;  // more than the tree of one file takes

class CellChoiceTest : public ::testing::Test {
 protected:
  CellChoiceTest()
      : bench_(
            {.geometry = std::nullopt, .disks = kDisks, .cache_bytes = 16u << 20, .copies = true, .on_disks = true}) {
    std::mt19937_64 random(4);
    data_ = noise(random, kBytes);
    EXPECT_TRUE(bench_.engine().write(bench_.object(), 0, data_).ok());
    EXPECT_TRUE(bench_.engine().write_back(bench_.object()).ok());
    EXPECT_TRUE(bench_.reopen().ok());
  }
  device::DiskCounters& counters(unsigned disk) { return *bench_.any_store().disk(disk).counters(); }
  // Read of each disk to read the file once, nothing being cached.
  std::vector<std::uint64_t> read_of_disks() {
    std::vector<std::uint64_t> bytes;
    for (unsigned disk = 0; disk < kDisks; ++disk) bytes.push_back(counters(disk).read_bytes);
    EXPECT_EQ(bench_.read_all(), data_);
    for (unsigned disk = 0; disk < kDisks; ++disk) bytes[disk] = counters(disk).read_bytes - bytes[disk];
    return bytes;
  }

  Bench bench_;
  ByteVector data_;
};

TEST_F(CellChoiceTest, IdleDisksShareTheReadsOfAFile) {
  const std::vector<std::uint64_t> bytes = read_of_disks();
  const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
  EXPECT_GE(*least, kBytes / kDisks * 3 / 4);
  EXPECT_LE(*most, kBytes / kDisks * 5 / 4 + kNodes);
}

TEST_F(CellChoiceTest, ADiskWithALongQueueIsPassedBy) {
  // What an idle disk is late with is read from the busy one: then all is read once more.
  unsigned attempts = 0;
  for (unsigned busy = 0; busy < kDisks && attempts < 50; ++attempts) {
    ASSERT_TRUE(bench_.reopen().ok());
    counters(busy).waiting_bytes += 1u << 30;
    const std::int64_t begin_ns = SystemEnvironment().monotonic_ns();
    const std::vector<std::uint64_t> bytes = read_of_disks();
    const bool may_be_late = SystemEnvironment().monotonic_ns() - begin_ns >= device::kLeastLateNs;
    counters(busy).waiting_bytes -= 1u << 30;
    if (may_be_late) continue;
    EXPECT_LE(bytes[busy], kNodes) << "disk " << busy;
    ++busy;
  }
  if (attempts == 50) GTEST_SKIP() << "the machine is too busy for this test";
}

TEST_F(CellChoiceTest, ACopyThatDoesNotMatchIsReplacedByTheFirstPieceAndTheOtherWayRound) {
  // All bytes of one disk but the metadata are spoiled, and the others have long queues: its pieces are tried first.
  for (unsigned spoiled = 0; spoiled < kDisks; ++spoiled) {
    ASSERT_TRUE(bench_.reopen().ok());
    AlignedBuffer zeros(128u << 10);
    for (unsigned disk = 0; disk < kDisks; ++disk)
      if (disk != spoiled) counters(disk).waiting_bytes += 1u << 30;
    std::vector<std::pair<store::Run, ByteVector>> kept;
    for (std::uint64_t cell = 0; cell < kBytes / MDFS_FILE_CELL; ++cell) {
      const auto found = format::read_cell(bench_.any_store(), {77, MDFS_KIND_FILE_CELL, cell}, 4096, true);
      ASSERT_TRUE(found.ok());
      for (const store::Run& run : found->all_runs()) {
        if (run.disk != spoiled) continue;
        AlignedBuffer bytes(run.blocks * std::size_t{4096});
        ASSERT_TRUE(device::read(bench_.any_store().disk(run.disk), run.block * 4096, bytes.bytes()).ok());
        kept.emplace_back(run, ByteVector(bytes.bytes().begin(), bytes.bytes().end()));
        ASSERT_TRUE(
            device::write(bench_.any_store().disk(run.disk), run.block * 4096, zeros.bytes().first(bytes.size())).ok());
      }
    }
    EXPECT_GT(kept.size(), 4u);
    const std::vector<std::uint64_t> read = read_of_disks();
    EXPECT_GE(read[spoiled], kBytes / kDisks) << "disk " << spoiled;
    for (const auto& [run, bytes] : kept) {
      AlignedBuffer again(bytes.size());
      std::copy(bytes.begin(), bytes.end(), again.bytes().begin());
      ASSERT_TRUE(device::write(bench_.any_store().disk(run.disk), run.block * 4096, again.bytes()).ok());
    }
    for (unsigned disk = 0; disk < kDisks; ++disk)
      if (disk != spoiled) counters(disk).waiting_bytes -= 1u << 30;
  }
}

}  // namespace
}  // namespace mdfs::engine::testing
