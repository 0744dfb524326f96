// Each kind of fault does what it says, and only that.
// SPDX-License-Identifier: Apache-2.0
#include "device/testing/faulty_disk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "base/aligned_buffer.h"
#include "device/testing/memory_disk.h"
#include "device/testing/recorder_disk.h"

namespace mdfs::device {
namespace {

constexpr std::uint64_t kBlock = 4096;

class FaultyDiskTest : public testing::Test {
 protected:
  Status put(FaultyDisk& disk, std::uint64_t block, int value, std::size_t blocks = 1) {
    AlignedBuffer buffer(blocks * kBlock);
    std::ranges::fill(buffer.bytes(), static_cast<std::byte>(value));
    return write(disk, block * kBlock, buffer.bytes());
  }
  Status get(FaultyDisk& disk, std::uint64_t block) {
    AlignedBuffer buffer(kBlock);
    return read(disk, block * kBlock, buffer.bytes());
  }
  // First byte of a block as it is stored.
  int stored(std::uint64_t block) {
    std::byte value;
    memory_.peek(block * kBlock, {&value, 1});
    return static_cast<int>(value);
  }
  // Bits of the block that are set where all should be clear.
  int bits(ConstBytes bytes) {
    int count = 0;
    for (const auto byte : bytes) count += std::popcount(static_cast<unsigned char>(byte));
    return count;
  }

  MemoryDisk memory_{"victim", 1u << 20};
};

TEST_F(FaultyDiskTest, AnErrorStrikesTheNthMatchingRequestOnce) {
  FaultyDisk disk(memory_, {{.kind = FaultKind::kError, .op = Op::kWrite, .skip = 2}});
  EXPECT_TRUE(put(disk, 0, 1).ok());
  EXPECT_TRUE(get(disk, 0).ok());
  EXPECT_TRUE(put(disk, 1, 1).ok());
  const auto status = put(disk, 2, 1);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Errc::kIo);
  EXPECT_NE(status.error().where.find("injected"), std::string::npos);
  EXPECT_EQ(stored(2), 0);
  EXPECT_TRUE(put(disk, 2, 1).ok());
  ASSERT_EQ(disk.injections().size(), 1u);
  EXPECT_EQ(disk.injections()[0].kind, FaultKind::kError);
  EXPECT_EQ(disk.injections()[0].offset, 2 * kBlock);
}

TEST_F(FaultyDiskTest, AStickyErrorOfARangeLeavesOtherBlocksAloneAndRepairs) {
  FaultyDisk disk(
      memory_,
      {{.kind = FaultKind::kError, .op = Op::kRead, .from = 4 * kBlock, .to = 5 * kBlock, .times = Fault::kSticky}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(get(disk, 4).ok());
    EXPECT_TRUE(get(disk, 3).ok());
    EXPECT_TRUE(get(disk, 5).ok());
  }
  disk.work_again();
  EXPECT_TRUE(get(disk, 4).ok());
}

TEST_F(FaultyDiskTest, AFailedFlushIsAnError) {
  FaultyDisk disk(memory_, {{.kind = FaultKind::kError, .op = Op::kFlush}});
  EXPECT_FALSE(flush(disk).ok());
  EXPECT_TRUE(flush(disk).ok());
}

TEST_F(FaultyDiskTest, AShortWriteStoresTheFirstHalfAndFails) {
  FaultyDisk disk(memory_, {{.kind = FaultKind::kShort, .op = Op::kWrite}});
  EXPECT_FALSE(put(disk, 0, 9, 4).ok());
  EXPECT_EQ(stored(1), 9);
  EXPECT_EQ(stored(2), 0);
}

TEST_F(FaultyDiskTest, AFlippedBitOfAReadIsGoneAtTheNextRead) {
  FaultyDisk disk(memory_, {{.kind = FaultKind::kBitFlip, .op = Op::kRead}});
  AlignedBuffer buffer(kBlock);
  ASSERT_TRUE(read(disk, 0, buffer.bytes()).ok());
  EXPECT_EQ(bits(buffer.bytes()), 1);
  ASSERT_TRUE(read(disk, 0, buffer.bytes()).ok());
  EXPECT_EQ(bits(buffer.bytes()), 0);
}

TEST_F(FaultyDiskTest, AFlippedBitOfAWriteStays) {
  FaultyDisk disk(memory_, {{.kind = FaultKind::kBitFlip, .op = Op::kWrite}});
  ASSERT_TRUE(put(disk, 0, 0).ok());
  AlignedBuffer buffer(kBlock);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(read(disk, 0, buffer.bytes()).ok());
    EXPECT_EQ(bits(buffer.bytes()), 1);
  }
}

TEST_F(FaultyDiskTest, PhantomMisdirectedAndSwappedWritesAllClaimSuccess) {
  FaultyDisk phantom(memory_, {{.kind = FaultKind::kPhantomWrite}});
  ASSERT_TRUE(put(phantom, 0, 1).ok());
  EXPECT_EQ(stored(0), 0);

  FaultyDisk misdirected(memory_, {{.kind = FaultKind::kMisdirectedWrite, .target = 9 * kBlock}});
  ASSERT_TRUE(put(misdirected, 0, 2).ok());
  EXPECT_EQ(stored(0), 0);
  EXPECT_EQ(stored(9), 2);

  FaultyDisk swapped(memory_, {{.kind = FaultKind::kSwappedWrites}});
  ASSERT_TRUE(put(swapped, 20, 3).ok());
  ASSERT_TRUE(put(swapped, 30, 4).ok());
  ASSERT_TRUE(put(swapped, 40, 5).ok());
  EXPECT_EQ(stored(20), 4);
  EXPECT_EQ(stored(30), 3);
  EXPECT_EQ(stored(40), 5);
}

TEST_F(FaultyDiskTest, ADroppedFlushClaimsSuccessAndDoesNotReachTheDisk) {
  RecorderLog log;
  RecorderDisk recorder(memory_, log, 0);
  FaultyDisk disk(recorder, {{.kind = FaultKind::kDroppedFlush}});
  ASSERT_TRUE(flush(disk).ok());
  EXPECT_EQ(log.size(), 0u);
  ASSERT_TRUE(flush(disk).ok());
  EXPECT_EQ(log.size(), 2u);
}

TEST_F(FaultyDiskTest, AStuckRequestCompletesWhenReleased) {
  FaultyDisk disk(memory_, {{.kind = FaultKind::kStuck, .op = Op::kWrite}});
  AlignedBuffer buffer(kBlock);
  std::ranges::fill(buffer.bytes(), std::byte{6});
  bool done = false;
  Io io;
  io.op = Op::kWrite;
  io.buffers.push_back(buffer.bytes());
  io.context = &done;
  io.done = [](Io& request) { *static_cast<bool*>(request.context) = true; };
  Io* request = &io;
  disk.submit({&request, 1});
  EXPECT_FALSE(done);
  EXPECT_EQ(disk.stuck(), 1u);
  EXPECT_TRUE(get(disk, 0).ok());
  EXPECT_EQ(stored(0), 0);
  disk.release();
  EXPECT_TRUE(done);
  EXPECT_TRUE(io.status.ok());
  EXPECT_EQ(stored(0), 6);
}

TEST_F(FaultyDiskTest, AGoneDiskFailsEverythingFromThenOn) {
  FaultyDisk disk(memory_, {{.kind = FaultKind::kGone, .op = Op::kWrite, .skip = 1}});
  EXPECT_TRUE(put(disk, 0, 1).ok());
  EXPECT_FALSE(put(disk, 1, 1).ok());
  EXPECT_FALSE(get(disk, 0).ok());
  EXPECT_FALSE(flush(disk).ok());
  EXPECT_EQ(disk.injections().size(), 3u);
}

TEST_F(FaultyDiskTest, AStaleDiskStaysAsItWasAndClaimsSuccess) {
  FaultyDisk disk(memory_, {{.kind = FaultKind::kStale, .op = Op::kFlush}});
  EXPECT_TRUE(put(disk, 0, 1).ok());
  EXPECT_TRUE(flush(disk).ok());
  const auto before = memory_.digest();
  EXPECT_TRUE(put(disk, 0, 2).ok());
  EXPECT_TRUE(flush(disk).ok());
  EXPECT_TRUE(get(disk, 0).ok());
  EXPECT_EQ(memory_.digest(), before);
}

TEST_F(FaultyDiskTest, TheSameSeedGivesTheSamePlanAndOthersDiffer) {
  const SeededPlan plan{{FaultKind::kError, FaultKind::kBitFlip, FaultKind::kMisdirectedWrite}, 20, 50};
  const auto words = [&](std::uint64_t seed) {
    std::vector<std::uint64_t> all;
    for (const auto& fault : seeded_plan(seed, plan, 1u << 20)) {
      all.insert(all.end(), {static_cast<std::uint64_t>(fault.kind), static_cast<std::uint64_t>(fault.op), fault.skip,
                             fault.times, fault.target});
    }
    return all;
  };
  EXPECT_EQ(words(1), words(1));
  EXPECT_NE(words(1), words(2));
}

TEST_F(FaultyDiskTest, EveryFaultOfASeededPlanThatStrikesIsNoted) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    MemoryDisk victim("victim", 1u << 20);
    FaultyDisk disk(victim, seeded_plan(seed, {{FaultKind::kError, FaultKind::kShort}, 3, 10}, 1u << 20), seed);
    std::size_t errors = 0;
    for (std::uint64_t i = 0; i < 30; ++i) {
      errors += put(disk, i, 1).ok() ? 0 : 1;
      errors += get(disk, i).ok() ? 0 : 1;
      errors += flush(disk).ok() ? 0 : 1;
    }
    EXPECT_EQ(errors, disk.injections().size());
    EXPECT_GT(errors, 0u);
  }
}

}  // namespace
}  // namespace mdfs::device
