// Extreme shapes: an image costs what is stored of it, however large it is, and no request ends the process.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/checked.h"
#include "engine/content.h"
#include "engine_fixture.h"

namespace mdfs::engine::testing {
namespace {

using geometry::Codec;
using geometry::ElementType;

const ByteVector kByte{std::byte{0x78}};

Setting huge(unsigned rank, geometry::Coord shape, geometry::Coord extent, Codec codec = Codec::kZstd,
             unsigned channels = 1, ElementType type = ElementType::kU8) {
  Setting setting;
  setting.geometry = image_of(rank, shape, extent, codec, channels, type);
  setting.disks = 1;
  setting.disk_bytes = 256u << 20;
  setting.cache_bytes = 64u << 20;
  return setting;
}

// ---- write-back of what lies far apart in one extent

// The changed bytes of an extent span so many blocks that their checksums fit no item of a strip.
void write_both_ends(const Setting& setting, std::uint64_t last) {
  Bench bench(setting);
  ASSERT_TRUE(bench.engine().write(bench.content(), 0, kByte).ok());
  ASSERT_TRUE(bench.engine().write(bench.content(), last, kByte).ok());
  const std::uint64_t size = bench.size();
  bench.read_all();  // now all of the extent is known
  ASSERT_TRUE(bench.engine().write_back(bench.content()).ok());
  ASSERT_TRUE(bench.reopen().ok());
  EXPECT_EQ(bench.size(), size);
  EXPECT_EQ(bench.read(0, 1), kByte);
  EXPECT_EQ(bench.read(last, 1), kByte);
}

TEST(ExtremeWrite, BothEndsOfAnExtentOf16MiBAreWrittenBack) {
  write_both_ends(huge(3, {13, 512, 512}, {32, 512, 512}, Codec::kRaw, 1, ElementType::kU16), 13ull * 512 * 512 * 2);
}

TEST(ExtremeWrite, BothEndsOfACubeOf16MiBAreWrittenBack) {
  write_both_ends(huge(3, {51, 352, 1}, {128, 128, 128}, Codec::kZstd, 1, ElementType::kF64), 50ull * 352 * 8);
}

TEST(ExtremeWrite, BothEndsOfASignalOfManyChannelsAreWrittenBack) {
  write_both_ends(huge(1, {64}, {128}, Codec::kZstd, 65535, ElementType::kU16), 63ull * 65535 * 2);
}

// 16 MiB in single blocks are more pieces than a record can name.
TEST(ExtremeWrite, AnExtentThatOnlyFitsInTooManyPiecesFindsNoSpace) {
  Bench bench(huge(3, {32, 512, 512}, {32, 512, 512}, Codec::kRaw, 1, ElementType::kU16));
  std::vector<store::Run> blocks;
  while (true) {
    const auto run = bench.store().allocate({.blocks = 1}, nullptr);
    if (!run.ok()) break;
    blocks.push_back(*run);
  }
  for (std::size_t i = 0; i < blocks.size(); i += 2) bench.store().abandon(blocks[i]);
  std::mt19937_64 random(1);
  ASSERT_TRUE(bench.engine().write(bench.content(), 0, noise(random, 16u << 20)).ok());
  const Status written = bench.engine().write_back(bench.content());
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, Errc::kNoSpace) << written.error().message();
  for (std::size_t i = 1; i < blocks.size(); i += 2) bench.store().abandon(blocks[i]);
  EXPECT_TRUE(bench.engine().write_back(bench.content()).ok());
}

}  // namespace
}  // namespace mdfs::engine::testing
