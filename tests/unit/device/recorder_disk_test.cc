// The order of the recorder's log.
// SPDX-License-Identifier: Apache-2.0
#include "device/testing/recorder_disk.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/aligned_buffer.h"
#include "device/testing/memory_disk.h"

namespace mdfs::device {
namespace {

class RecorderDiskTest : public testing::Test {
 protected:
  RecorderLog log_;
  MemoryDisk memory0_{"m0", 1u << 20};
  MemoryDisk memory1_{"m1", 1u << 20};
  RecorderDisk disk0_{memory0_, log_, 0};
  RecorderDisk disk1_{memory1_, log_, 1};
};

TEST_F(RecorderDiskTest, LogsStartAndEndOfWritesAndFlushesWithMarksInOneOrder) {
  AlignedBuffer block(4096);
  std::ranges::fill(block.bytes(), std::byte{7});
  ASSERT_TRUE(write(disk0_, 8192, block.bytes()).ok());
  log_.mark("first", 1);
  ASSERT_TRUE(write(disk1_, 4096, block.bytes()).ok());
  ASSERT_TRUE(flush(disk1_).ok());
  ASSERT_TRUE(read(disk1_, 0, block.bytes()).ok());
  const auto events = log_.events();
  ASSERT_EQ(events.size(), 7u);
  EXPECT_EQ(events[0].kind, EventKind::kStart);
  EXPECT_EQ(events[0].disk, 0u);
  EXPECT_EQ(events[0].offset, 8192u);
  EXPECT_EQ(events[0].length, 4096u);
  EXPECT_EQ(*events[0].data, ByteVector(4096, std::byte{7}));
  EXPECT_EQ(events[1].kind, EventKind::kEnd);
  EXPECT_EQ(events[1].request, events[0].request);
  EXPECT_TRUE(events[1].ok);
  EXPECT_EQ(events[2].kind, EventKind::kMark);
  EXPECT_EQ(events[2].mark, "first");
  EXPECT_EQ(events[2].value, 1u);
  EXPECT_EQ(events[3].disk, 1u);
  EXPECT_EQ(events[5].op, Op::kFlush);
  EXPECT_EQ(events[5].kind, EventKind::kStart);
  EXPECT_EQ(events[6].kind, EventKind::kEnd);
}

TEST_F(RecorderDiskTest, ARefusedRequestIsNotLogged) {
  AlignedBuffer block(4096);
  EXPECT_FALSE(write(disk0_, 1u << 20, block.bytes()).ok());
  EXPECT_EQ(log_.size(), 0u);
  memory0_.set_writable(false);
  EXPECT_FALSE(write(disk0_, 0, block.bytes()).ok());
  EXPECT_EQ(log_.size(), 0u);
}

TEST_F(RecorderDiskTest, TheDataAreThoseOfTheTimeOfTheWrite) {
  AlignedBuffer block(4096);
  std::ranges::fill(block.bytes(), std::byte{1});
  ASSERT_TRUE(write(disk0_, 0, block.bytes()).ok());
  std::ranges::fill(block.bytes(), std::byte{2});
  EXPECT_EQ(*log_.events()[0].data, ByteVector(4096, std::byte{1}));
}

}  // namespace
}  // namespace mdfs::device
