// Reads of which a thread stops waiting.
// SPDX-License-Identifier: Apache-2.0
#include "device/stoppable_reads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "base/stop.h"
#include "device/testing/faulty_disk.h"
#include "device/testing/memory_disk.h"

namespace mdfs::device {
namespace {

constexpr std::size_t kBlock = 4096;

class StoppableReadsTest : public testing::Test {
 protected:
  StoppableReadsTest() {
    for (std::uint64_t block = 0; block < 16; ++block) {
      AlignedBuffer buffer(kBlock);
      std::ranges::fill(buffer.bytes(), static_cast<std::byte>(block));
      EXPECT_TRUE(write(memory_, block * kBlock, buffer.bytes()).ok());
    }
  }
  ~StoppableReadsTest() override { disk_.release(); }

  void stick(std::uint64_t block) {
    disk_.add({.kind = FaultKind::kStuck, .from = block * kBlock, .to = (block + 1) * kBlock, .times = Fault::kSticky});
  }
  std::vector<StoppableReads::Wanted> blocks(std::initializer_list<std::uint64_t> numbers) {
    std::vector<StoppableReads::Wanted> wanted;
    for (const std::uint64_t number : numbers) wanted.push_back({&disk_, number * kBlock, kBlock});
    return wanted;
  }
  static bool is_of(const StoppableReads::Read& read, std::uint64_t block) {
    return read.status.ok() && read.bytes.size() == kBlock &&
           std::ranges::all_of(read.bytes, [&](std::byte byte) { return byte == static_cast<std::byte>(block); });
  }
  static bool is_cancelled(const StoppableReads::Read& read) {
    return !read.status.ok() && read.status.error().code == Errc::kCancelled;
  }

  MemoryDisk memory_{"memory", 1u << 20};
  FaultyDisk disk_{memory_, {}};
};

TEST_F(StoppableReadsTest, AllReadsComeWithTheirBytesInTheirOrder) {
  StoppableReads reads;
  const auto done = reads.read(blocks({3, 1, 7}));
  ASSERT_EQ(done.reads.size(), 3u);
  EXPECT_TRUE(is_of(done.reads[0], 3) && is_of(done.reads[1], 1) && is_of(done.reads[2], 7));
  EXPECT_TRUE(reads.read({}).reads.empty());
}

TEST_F(StoppableReadsTest, APatienceThatIsOverLeavesTheReadsThatHaveNotEnded) {
  StoppableReads reads;
  stick(2);
  const auto done = reads.read(blocks({1, 2}), std::chrono::milliseconds(20));
  EXPECT_TRUE(is_of(done.reads[0], 1));
  ASSERT_FALSE(done.reads[1].status.ok());
  EXPECT_EQ(done.reads[1].status.error().code, Errc::kBusy);
  const auto at_once = reads.read(blocks({3}), std::chrono::hours(1));
  EXPECT_TRUE(is_of(at_once.reads[0], 3));
  disk_.work_again();
  disk_.release();
}

TEST_F(StoppableReadsTest, AnErrorIsThatOfItsReadAlone) {
  disk_.add({.kind = FaultKind::kError, .from = kBlock, .to = 2 * kBlock});
  StoppableReads reads;
  const auto done = reads.read(blocks({3, 1, 7}));
  EXPECT_TRUE(is_of(done.reads[0], 3) && is_of(done.reads[2], 7));
  ASSERT_FALSE(done.reads[1].status.ok());
  EXPECT_EQ(done.reads[1].status.error().code, Errc::kIo);
}

TEST_F(StoppableReadsTest, AStoppedThreadLeavesWithWhatHasEnded) {
  stick(1);
  std::optional<StoppableReads> reads(std::in_place);
  {
    const StopScope scope([] { return true; });
    const auto done = reads->read(blocks({3, 1, 7}));
    EXPECT_TRUE(is_of(done.reads[0], 3) && is_of(done.reads[2], 7));
    EXPECT_TRUE(is_cancelled(done.reads[1]));
  }
  std::atomic<bool> ended = false;
  std::thread end([&] {
    reads.reset();  // waits for what the disk still fills
    ended = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(ended);
  disk_.work_again();
  disk_.release();
  end.join();
}

TEST_F(StoppableReadsTest, OutsideOfAScopeAThreadWaits) {
  stick(1);
  StoppableReads reads;
  std::atomic<bool> ended = false;
  std::thread reader([&] {
    EXPECT_TRUE(is_of(reads.read(blocks({1})).reads[0], 1));
    ended = true;
  });
  while (disk_.stuck() == 0) std::this_thread::yield();
  std::this_thread::sleep_for(2 * kStopPoll);
  EXPECT_FALSE(ended);
  disk_.work_again();
  disk_.release();
  reader.join();
}

TEST_F(StoppableReadsTest, OnlySoManyLeaveReadsBehind) {
  stick(1);
  StoppableReads reads;
  std::vector<std::thread> readers;
  std::atomic<std::size_t> left = 0, waited = 0;
  for (std::size_t i = 0; i < StoppableReads::kMostLeft + 3; ++i)
    readers.emplace_back([&] {
      const StopScope scope([] { return true; });
      (is_cancelled(reads.read(blocks({1})).reads[0]) ? left : waited)++;
    });
  while (left < StoppableReads::kMostLeft) std::this_thread::yield();
  std::this_thread::sleep_for(2 * kStopPoll);
  EXPECT_EQ(left, StoppableReads::kMostLeft);  // three wait still
  EXPECT_EQ(waited, 0u);
  disk_.work_again();
  disk_.release();  // as reads end, those three may leave theirs behind
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(left + waited, StoppableReads::kMostLeft + 3);
}

}  // namespace
}  // namespace mdfs::device
