// The ring for commands of character devices.
// SPDX-License-Identifier: Apache-2.0
#include "device/command_ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "device/unique_fd.h"

namespace mdfs::device {
namespace {

TEST(CommandRing, ReadsAndCommandsEndWithTheirTokens) {
  auto ring = CommandRing::create();
  if (!ring.ok()) GTEST_SKIP() << ring.error().message();
  ASSERT_TRUE(ring->enable().ok());
  const UniqueFd zero(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  std::array<std::byte, 8> bytes;
  bytes.fill(std::byte{1});
  std::uint64_t token = 0;
  int result = 0;
  EXPECT_FALSE(ring->next(token, result));
  EXPECT_TRUE(ring->read(zero.get(), bytes, 7));
  ring->wait();
  ASSERT_TRUE(ring->has_next());
  ASSERT_TRUE(ring->next(token, result));
  EXPECT_EQ(token, 7u);
  EXPECT_EQ(result, 8);
  EXPECT_EQ(bytes[7], std::byte{0});
  EXPECT_TRUE(ring->command(zero.get(), 1, bytes, {}, 9));  // /dev/zero takes none
  ring->wait();
  ASSERT_TRUE(ring->next(token, result));
  EXPECT_EQ(token, 9u);
  EXPECT_EQ(result, -EOPNOTSUPP);
  EXPECT_FALSE(ring->has_next());
}

TEST(CommandRing, MoreRequestsThanTheRingHoldsAreSubmittedInBetween) {
  auto ring = CommandRing::create();
  if (!ring.ok()) GTEST_SKIP() << ring.error().message();
  ASSERT_TRUE(ring->enable().ok());
  const UniqueFd zero(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  std::array<std::byte, 8> bytes;
  constexpr std::uint64_t kCount = 4 * CommandRing::kCompletionEntries;
  for (std::uint64_t i = 0; i < kCount; ++i) ASSERT_TRUE(ring->read(zero.get(), bytes, i));
  std::uint64_t token = 0, found = 0;
  int result = 0;
  while (found < kCount) {
    ring->wait();
    while (ring->next(token, result)) ++found;
  }
  EXPECT_EQ(found, kCount);
}

}  // namespace
}  // namespace mdfs::device
