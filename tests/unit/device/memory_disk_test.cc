// Forking and digests of disks in memory.
// SPDX-License-Identifier: Apache-2.0
#include "device/testing/memory_disk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/aligned_buffer.h"

namespace mdfs::device {
namespace {

AlignedBuffer filled(std::size_t bytes, int value) {
  AlignedBuffer buffer(bytes);
  std::ranges::fill(buffer.bytes(), static_cast<std::byte>(value));
  return buffer;
}

TEST(MemoryDiskTest, CloneAndOriginalGoOnApart) {
  MemoryDisk disk("a", 8u << 20);
  const auto one = filled(4096, 1);
  const auto two = filled(4096, 2);
  const auto three = filled(4096, 3);
  ASSERT_TRUE(write(disk, 4096, one.bytes()).ok());
  auto copy = disk.clone("b");
  EXPECT_EQ(copy->name(), "b");
  EXPECT_EQ(copy->digest(), disk.digest());
  ASSERT_TRUE(write(*copy, 4096, two.bytes()).ok());
  ASSERT_TRUE(write(disk, 5u << 20, three.bytes()).ok());
  AlignedBuffer back(4096);
  ASSERT_TRUE(read(disk, 4096, back.bytes()).ok());
  EXPECT_TRUE(std::ranges::equal(back.bytes(), one.bytes()));
  ASSERT_TRUE(read(*copy, 4096, back.bytes()).ok());
  EXPECT_TRUE(std::ranges::equal(back.bytes(), two.bytes()));
  ASSERT_TRUE(read(*copy, 5u << 20, back.bytes()).ok());
  EXPECT_EQ(back.data()[0], std::byte{0});
}

TEST(MemoryDiskTest, DigestTellsContentsAndNotHistory) {
  MemoryDisk a("a", 1u << 20);
  MemoryDisk b("b", 1u << 20);
  EXPECT_EQ(a.digest(), b.digest());
  const auto one = filled(8192, 1);
  ASSERT_TRUE(write(a, 0, one.bytes()).ok());
  EXPECT_NE(a.digest(), b.digest());
  ASSERT_TRUE(write(b, 4096, one.bytes()).ok());
  EXPECT_NE(a.digest(), b.digest());
  ASSERT_TRUE(write(b, 0, one.bytes()).ok());
  b.zero(8192, 4096);
  EXPECT_EQ(a.digest(), b.digest());
  a.zero(0, 8192);
  EXPECT_EQ(a.digest(), MemoryDisk("c", 1u << 20).digest());
  EXPECT_NE(a.digest(), MemoryDisk("c", 2u << 20).digest());
}

TEST(MemoryDiskTest, OneFlippedBitChangesTheDigest) {
  MemoryDisk disk("a", 1u << 20);
  const auto before = disk.digest();
  for (const std::uint64_t offset : {0u, 4095u, 16384u, 1048575u}) {
    const std::byte bit{4};
    disk.poke(offset, {&bit, 1});
    EXPECT_NE(disk.digest(), before);
    disk.zero(offset, 1);
    EXPECT_EQ(disk.digest(), before);
  }
}

TEST(MemoryDiskTest, ResizingCutsOffAndLengthensByZeros) {
  MemoryDisk disk("a", 16384);
  const auto one = filled(16384, 1);
  ASSERT_TRUE(write(disk, 0, one.bytes()).ok());
  disk.resize(4096);
  AlignedBuffer back(4096);
  EXPECT_FALSE(read(disk, 4096, back.bytes()).ok());
  disk.resize(32768);
  ASSERT_TRUE(read(disk, 4096, back.bytes()).ok());
  EXPECT_EQ(back.data()[0], std::byte{0});
  ASSERT_TRUE(read(disk, 0, back.bytes()).ok());
  EXPECT_EQ(back.data()[4095], std::byte{1});
}

TEST(MemoryDiskTest, ClonesAreUsedFromManyThreadsAtOnce) {
  MemoryDisk base("base", 1u << 20);
  const auto one = filled(65536, 1);
  ASSERT_TRUE(write(base, 0, one.bytes()).ok());
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&base, t] {
      for (int i = 0; i < 200; ++i) {
        auto copy = base.clone();
        const auto mine = filled(4096, 2 + t);
        ASSERT_TRUE(write(*copy, 4096 * static_cast<unsigned>(t), mine.bytes()).ok());
        AlignedBuffer back(65536);
        ASSERT_TRUE(read(*copy, 0, back.bytes()).ok());
        EXPECT_EQ(std::ranges::count(back.bytes(), static_cast<std::byte>(2 + t)), 4096);
        EXPECT_EQ(std::ranges::count(back.bytes(), std::byte{1}), 65536 - 4096);
      }
    });
  }
}

TEST(MemoryDiskTest, AHundredThousandForksOfASmallVolumeAreCheap) {
  MemoryDisk base("base", 16u << 20);
  const auto one = filled(1u << 20, 1);
  ASSERT_TRUE(write(base, 0, one.bytes()).ok());
  const auto block = filled(4096, 2);
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < 100000; ++i) {
    auto copy = base.clone();
    if (i % 100 == 0) {
      ASSERT_TRUE(write(*copy, 4096 * (i / 100 % 256), block.bytes()).ok());
    }
    sum += copy->size_bytes();
  }
  EXPECT_EQ(sum, 100000ull * (16u << 20));
}

}  // namespace
}  // namespace mdfs::device
