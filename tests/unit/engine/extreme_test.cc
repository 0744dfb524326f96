// Extreme shapes: an image costs what is stored of it, however large it is, and no request ends the process.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/checked.h"
#include "engine/cache/cache.h"
#include "engine/open_object.h"
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
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, kByte).ok());
  ASSERT_TRUE(bench.engine().write(bench.object(), last, kByte).ok());
  const std::uint64_t size = bench.size();
  bench.read_all();  // now all of the extent is known
  ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
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
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, noise(random, 16u << 20)).ok());
  const Status written = bench.engine().write_back(bench.object());
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, Errc::kNoSpace) << written.error().message();
  for (std::size_t i = 1; i < blocks.size(); i += 2) bench.store().abandon(blocks[i]);
  // The engine may have tried again by itself meanwhile, and that failure is told of once.
  Status again = bench.engine().write_back(bench.object());
  if (!again.ok()) again = bench.engine().write_back(bench.object());
  EXPECT_TRUE(again.ok()) << again.error().message();
}

// ---- what is not stored costs nothing

constexpr std::uint64_t kMostLookups = 400;

// How many looks into the tree a call takes.
template <typename Call>
std::uint64_t lookups_of(Bench& bench, Call&& call) {
  const std::uint64_t before = bench.store().lookups();
  const Status status = call();
  EXPECT_TRUE(status.ok()) << status.error().message();
  return bench.store().lookups() - before;
}

struct Huge {
  const char* name;
  Setting setting;
};

std::vector<Huge> huge_images() {
  return {{"cubes", huge(3, {100, 100000, 100000}, {64, 64, 32})},
          {"channels", huge(2, {3, 2147483648}, {4, 16}, Codec::kZstd, 65535, ElementType::kU32)},
          {"flat", huge(3, {2, 1000000, 1000000}, {64, 64, 32}, Codec::kRaw)},
          {"columns", huge(2, {1u << 30, 1u << 30}, {65536, 1})},
          {"line", huge(2, {1, std::uint64_t{1} << 62}, {1, 16384})},
          {"signal", huge(1, {std::uint64_t{1} << 62}, {131072})}};
}

class ExtremeShape : public ::testing::TestWithParam<Huge> {};

TEST_P(ExtremeShape, ShorteningASparseImageLooksAtWhatIsStored) {
  Bench bench(GetParam().setting);
  const std::uint64_t size = bench.size();
  ASSERT_TRUE(bench.engine().write(bench.object(), size / 3, kByte).ok());
  ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  for (const std::uint64_t to : {size - 1, size / 2 + 1, size / 3 + 1, size / 3, std::uint64_t{7}})
    EXPECT_LE(lookups_of(bench, [&] { return bench.engine().truncate(bench.object(), to); }), kMostLookups) << to;
  EXPECT_EQ(bench.size(), 7u);
  EXPECT_EQ(bench.store().used_blocks(), 0u);
  ASSERT_TRUE(bench.engine().truncate(bench.object(), size).ok());
  EXPECT_EQ(bench.read(size / 3, 1), ByteVector(1));
}

TEST_P(ExtremeShape, PunchingAnEmptyImageWritesNothing) {
  Bench bench(GetParam().setting);
  const std::uint64_t size = bench.size();
  const auto punch = [&](std::uint64_t offset, std::uint64_t length) {
    EXPECT_LE(lookups_of(bench, [&] { return bench.engine().punch(bench.object(), offset, length); }), kMostLookups);
    EXPECT_EQ(bench.engine().cache_stats().dirty_bytes, 0u);
  };
  punch(0, size - 1);
  punch(size / 2 + 1, size);
  punch(size / 7, 5);
  punch(1, size - 2);
  ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  EXPECT_EQ(bench.store().used_blocks(), 0u);
}

TEST_P(ExtremeShape, PunchingZeroesWhatIsStoredAndWhatIsDirty) {
  Bench bench(GetParam().setting);
  const std::uint64_t size = bench.size();
  const std::uint64_t stored = size / 5, dirty = size / 3, kept = size / 5 + 1;
  ASSERT_TRUE(bench.engine().write(bench.object(), stored, kByte).ok());
  ASSERT_TRUE(bench.engine().write(bench.object(), kept, kByte).ok());
  ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  ASSERT_TRUE(bench.engine().write(bench.object(), dirty, kByte).ok());
  EXPECT_LE(lookups_of(bench, [&] { return bench.engine().punch(bench.object(), 0, stored + 1); }), kMostLookups);
  EXPECT_LE(lookups_of(bench, [&] { return bench.engine().punch(bench.object(), kept + 1, size); }), kMostLookups);
  for (unsigned i = 0; i < 2; ++i) {
    EXPECT_EQ(bench.read(stored, 1), ByteVector(1));
    EXPECT_EQ(bench.read(kept, 1), kByte);
    EXPECT_EQ(bench.read(dirty, 1), ByteVector(1));
    ASSERT_TRUE(bench.reopen().ok());
  }
}

TEST_P(ExtremeShape, AWriteTakesNoMoreMemoryThanTheBudget) {
  Bench bench(GetParam().setting);
  std::mt19937_64 random(1);
  const ByteVector bytes = noise(random, 1000);
  ASSERT_TRUE(bench.engine().write(bench.object(), bench.size() / 2, bytes).ok());
  EXPECT_LE(bench.engine().cache_stats().bytes, GetParam().setting.cache_bytes * 5 / 4);
  EXPECT_EQ(bench.read(bench.size() / 2, bytes.size()), bytes);
}

INSTANTIATE_TEST_SUITE_P(Images, ExtremeShape, ::testing::ValuesIn(huge_images()), kNameOf);

// Stores noise, shortens it to `to` bytes, and enlarges it again: what was cut off is zero. Returns how many
// transactions shortened it.
unsigned transactions_of_cut(const Setting& setting, std::size_t to) {
  Bench bench(setting);
  std::mt19937_64 random(1);
  ByteVector bytes = noise(random, bench.size());
  EXPECT_TRUE(bench.engine().write(bench.object(), 0, bytes).ok());
  EXPECT_TRUE(bench.engine().write_back(bench.object()).ok());
  const unsigned updates = bench.inode().updates;
  EXPECT_TRUE(bench.engine().truncate(bench.object(), to).ok());
  const unsigned transactions = bench.inode().updates - updates;
  bytes.resize(to);
  EXPECT_TRUE(bench.reopen().ok());
  EXPECT_TRUE(bench.read_all() == bytes);
  EXPECT_TRUE(bench.engine().truncate(bench.object(), setting.geometry->size_bytes()).ok());
  bytes.resize(setting.geometry->size_bytes());
  EXPECT_TRUE(bench.read_all() == bytes);
  return transactions;
}

// Each extent is written once, however many steps of the slowest axis lie in it.
TEST(ExtremeTruncate, ARowOfVeryManyExtentsIsCutAtOnce) {
  Setting setting = huge(3, {16, 160, 2560}, {16, 1, 16});
  setting.disk_bytes = 512u << 20;
  setting.cache_bytes = 64u << 20;
  EXPECT_EQ(transactions_of_cut(setting, 2u * 160 * 2560 + 77), 1u);
}

// What a cut in steps leaves is what a cut at once leaves: more extents lose bytes than one transaction takes.
TEST(ExtremeTruncate, AnImageWithMoreExtentsThanMemoryHasRoomForIsShortenedInSteps) {
  Setting setting = huge(3, {4, 160, 2560}, {4, 1, 16});
  setting.cache_bytes = 1u << 20;
  setting.disk_bytes = 512u << 20;
  EXPECT_GT(transactions_of_cut(setting, 160u * 2560 + 77), 1u);
}

// No extent is written again, and the number of transactions does not grow with the steps of axis 0.
TEST(ExtremeTruncate, AWholeRowOfVeryManyExtentsGoesAtOnce) {
  Setting setting = huge(3, {4, 160, 2560}, {4, 1, 16});
  setting.disk_bytes = 512u << 20;
  Bench bench(setting);
  std::mt19937_64 random(1);
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, noise(random, bench.size())).ok());
  ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  const unsigned updates = bench.inode().updates;
  ASSERT_TRUE(bench.engine().truncate(bench.object(), 0).ok());
  EXPECT_LE(bench.inode().updates, updates + 3);
  ASSERT_TRUE(bench.reopen().ok());
  ASSERT_TRUE(bench.engine().truncate(bench.object(), setting.geometry->size_bytes()).ok());
  EXPECT_TRUE(bench.read_all() == ByteVector(setting.geometry->size_bytes()));
}

// Two runs of many small extents, and almost nothing stored between and behind them.
TEST(ExtremeTruncate, WhatIsNotStoredBesideVeryManyExtentsIsPassedOver) {
  const std::vector<Setting> images = {
      huge(4, {1, 1, 1000000000, 13}, {8, 64, 3, 1}),
      huge(3, {1, 300000000, 13}, {64, 64, 1}),
      huge(3, {1, 300000000, 13}, {1, 1, 5}, Codec::kRaw),
      huge(5, {2, 3, 1, 1u << 20, 17}, {1, 1, 2, 1, 4}),
      huge(2, {1u << 20, 1u << 20}, {8, 2}),
      huge(2, {1, 1u << 30}, {4, 2}),
  };
  for (const Setting& setting : images) {
    SCOPED_TRACE(::testing::PrintToString(setting.geometry->shape));
    Bench bench(setting);
    std::mt19937_64 random(1);
    const std::uint64_t size = bench.size();
    ByteVector bytes = noise(random, 50000);
    ASSERT_TRUE(bench.engine().write(bench.object(), 0, bytes).ok());
    ASSERT_TRUE(bench.engine().write(bench.object(), size / 3, bytes).ok());
    ASSERT_TRUE(bench.engine().write(bench.object(), size - 1, kByte).ok());
    ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
    const unsigned updates = bench.inode().updates;
    ASSERT_TRUE(bench.engine().truncate(bench.object(), 1000).ok());
    EXPECT_LE(bench.inode().updates, updates + 40);
    ASSERT_TRUE(bench.reopen().ok());
    bytes.resize(1000);
    EXPECT_TRUE(bench.read_all() == bytes);
    ASSERT_TRUE(bench.engine().truncate(bench.object(), size).ok());
    bytes.resize(60000);
    EXPECT_TRUE(bench.read(0, bytes.size()) == bytes);
    EXPECT_TRUE(bench.read(size / 3, bytes.size()) == ByteVector(bytes.size()));
  }
}

// ---- files

TEST(ExtremePunch, AHoleInUnsyncedBytesOfAFileIsAHole) {
  Setting setting;
  setting.disks = 1;
  Bench bench(setting);
  std::mt19937_64 random(1);
  ByteVector bytes = noise(random, 1u << 20);
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, bytes).ok());
  ASSERT_TRUE(bench.engine().punch(bench.object(), 100000, 600000).ok());
  std::fill_n(bytes.begin() + 100000, 600000, std::byte{0});
  for (unsigned i = 0; i < 2; ++i) {
    EXPECT_EQ(bench.engine().next_hole(bench.object(), 0).value(), align_up(100000u, 4096u));
    EXPECT_EQ(bench.engine().next_data(bench.object(), 200000).value(), align_down(700000u, 4096u));
    EXPECT_TRUE(bench.read_all() == bytes);
    ASSERT_TRUE(bench.reopen().ok());
  }
}

TEST(ExtremePunch, AHoleUpToTheEndOfAFileLeavesItsSize) {
  for (const std::uint64_t offset : {4095u, 4096u, 8000u, 8500u, 8999u}) {
    Bench bench(Setting{});
    std::mt19937_64 random(1);
    ByteVector bytes = noise(random, 9000);
    ASSERT_TRUE(bench.engine().write(bench.object(), 0, bytes).ok());
    ASSERT_TRUE(bench.engine().punch(bench.object(), offset, 100000).ok());
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(offset), bytes.end(), std::byte{0});
    EXPECT_TRUE(bench.read_all() == bytes) << offset;
  }
}

TEST(ExtremePunch, TheEdgesOfAHoleInAHoleStayHoles) {
  Setting setting;
  setting.disks = 1;
  Bench bench(setting);
  ASSERT_TRUE(bench.engine().truncate(bench.object(), 10u << 20).ok());
  ASSERT_TRUE(bench.engine().punch(bench.object(), 5000, 5000000).ok());
  ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  EXPECT_EQ(bench.store().used_blocks(), 0u);
}

// Extents of holes have no buffers.
TEST(ExtremeRead, ReadingHolesTakesNoMoreMemoryThanTheBudget) {
  BufferPool pool(1u << 20);
  Cache cache(pool, 4u << 20);
  for (std::uint64_t index = 0; index < 100'000; ++index) {
    ASSERT_EQ(cache.find_or_create({1, index})->key.index, index);
    ASSERT_LE(cache.used_bytes(), (4u << 20) + 1024) << index;
  }
}

// A window of tiny extents: all its extents are held at once, and none of them can go. Looking at all for each one
// would take minutes, and end the test.
TEST(ExtremeRead, ARequestThatHoldsMoreThanTheBudgetDoesNotLookAtAllThatItHoldsForEachBlock) {
  BufferPool pool(1u << 20);
  Cache cache(pool, 1u << 20);
  std::vector<CacheBlockPtr> held;
  for (std::uint64_t index = 0; index < 400'000; ++index) held.push_back(cache.find_or_create({1, index}));
  for (std::uint64_t index = 0; index < held.size(); ++index) ASSERT_EQ(cache.peek({1, index}), held[index]);
  const std::size_t most = cache.used_bytes();
  held.clear();
  for (std::uint64_t index = 0; index < 400'000; ++index) cache.find_or_create({2, index});
  EXPECT_LE(cache.used_bytes(), (1u << 20) + 1024);
  EXPECT_GT(most, 10u << 20);
}

}  // namespace
}  // namespace mdfs::engine::testing
