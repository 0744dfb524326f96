// The buffers of a client in the daemon.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fuse/channel_buffers.h"

namespace mdfs::fuse {
namespace {

constexpr std::uint64_t kBytes = 8192;

std::shared_ptr<SharedMemory> memory() {
  auto made = SharedMemory::make("mdfs-buffer", kBytes);
  return made.ok() ? std::make_shared<SharedMemory>(std::move(made).value()) : nullptr;
}

TEST(ChannelBuffersTest, ARemovedBufferIsFreedWhenNoRequestHoldsIt) {
  ChannelBuffers buffers;
  const auto number = buffers.add(memory());
  ASSERT_TRUE(number.ok());
  auto held = buffers.find(*number);
  ASSERT_NE(held, nullptr);
  buffers.remove(*number);
  EXPECT_EQ(buffers.find(*number), nullptr);
  EXPECT_EQ(buffers.reap(), 0u);
  EXPECT_TRUE(buffers.has_removed());
  EXPECT_EQ(buffers.bytes(), kBytes);
  held.reset();
  EXPECT_EQ(buffers.reap(), kBytes);
  EXPECT_FALSE(buffers.has_removed());
  EXPECT_EQ(buffers.bytes(), 0u);
}

TEST(ChannelBuffersTest, AClientHasABoundedNumberOfThem) {
  ChannelBuffers buffers;
  for (std::uint32_t i = 1; i <= channel::kMostBuffers; ++i) EXPECT_EQ(buffers.add(memory()).value(), i);
  EXPECT_EQ(buffers.add(memory()).error().code, Errc::kTooManyFiles);
  for (const std::uint32_t wrong : {0u, channel::kMostBuffers + 1, UINT32_MAX}) {
    EXPECT_EQ(buffers.find(wrong), nullptr);
    buffers.remove(wrong);
  }
  buffers.remove(3);
  buffers.remove(3);
  EXPECT_EQ(buffers.reap(), kBytes);
  EXPECT_EQ(buffers.add(memory()).value(), 3u);
}

}  // namespace
}  // namespace mdfs::fuse
