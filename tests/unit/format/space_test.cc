// The layout of disks, and space pages.
// SPDX-License-Identifier: Apache-2.0
#include "format/space.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "base/crc32c.h"
#include "samples.h"

namespace mdfs::format {
namespace {

DiskLayout layout_for(std::uint32_t block_size, std::uint64_t bytes) {
  const std::uint64_t blocks = disk_blocks(block_size, bytes);
  return DiskLayout(block_size, blocks, default_metadata_blocks(block_size, blocks));
}

TEST(DiskLayoutTest, TheSmallestDiskKeepsMostOfItsSpaceForData) {
  for (std::uint32_t block_size = 4096; block_size <= 65536; block_size *= 2) {
    const DiskLayout layout = layout_for(block_size, MDFS_MIN_DISK_SIZE);
    EXPECT_TRUE(layout.consistent());
    EXPECT_GE((layout.end_usable() - layout.metadata_end()) * block_size, MDFS_MIN_DISK_SIZE / 2) << block_size;
    EXPECT_GE(layout.blocks() / default_zone_blocks(block_size, layout.blocks()), 32u);
  }
}

TEST(DiskLayoutTest, RegionsOfHugeDisksStopAtOneGib) {
  const std::uint64_t blocks = disk_blocks(4096, std::uint64_t{1} << 50);
  EXPECT_EQ(default_zone_blocks(4096, blocks) * 4096, std::uint64_t{1} << 30);
  EXPECT_EQ(default_metadata_blocks(4096, blocks) * 4096, std::uint64_t{1} << 30);
}

RC_GTEST_PROP(DiskLayoutTest, PartsOfARunLieOnOneBitmapPageEachAndDoNotContinueOneAnother, (std::uint64_t seed)) {
  Samples samples(seed);
  const Run run{1, samples.number(0, 1u << 20), static_cast<std::uint32_t>(samples.number(1, 1u << 18))};
  Run whole{1, run.block, 0};
  for (const Run& part : parts_on_pages(run)) {
    RC_ASSERT((part.disk == 1 && part.blocks > 0 && part.block == whole.end()));
    RC_ASSERT(DiskLayout::bitmap_page(part.block) == DiskLayout::bitmap_page(part.end() - 1));
    RC_ASSERT((whole.blocks == 0 || !continues({1, part.block - 1, 1}, part)));
    whole.blocks += part.blocks;
  }
  RC_ASSERT(whole == run);
  const std::uint64_t block = samples.number(1, 1u << 20);
  RC_ASSERT(continues({0, block - 1, 1}, {0, block, 1}) == (block % MDFS_BITS_PER_PAGE != 0));
  RC_ASSERT((!continues({0, block - 1, 1}, {0, block + 1, 1}) && !continues({0, block - 1, 1}, {1, block, 1})));
}

RC_GTEST_PROP(DiskLayoutTest, PartsLieInOrderAndDoNotOverlap, (std::uint64_t seed)) {
  Samples samples(seed);
  const auto block_size = static_cast<std::uint32_t>(4096u << samples.number(0, 4));
  const DiskLayout layout = layout_for(block_size, samples.number(MDFS_MIN_DISK_SIZE, 1ull << samples.number(23, 56)));
  RC_ASSERT(layout.consistent());
  RC_ASSERT(layout.label_offset(0) == 0u);
  RC_ASSERT(layout.label_offset(1) == MDFS_LABEL_AREA);
  RC_ASSERT(layout.label_offset(2) == layout.bytes() - 2 * MDFS_LABEL_AREA);
  RC_ASSERT(layout.label_offset(3) == layout.bytes() - MDFS_LABEL_AREA);
  RC_ASSERT(layout.end_usable() * block_size == layout.label_offset(2));
  RC_ASSERT(layout.space_pages(layout.space_levels() - 1) == 1u);
  std::uint64_t end = 2 * MDFS_LABEL_AREA;
  for (unsigned level = 0; level < layout.space_levels(); ++level) {
    RC_ASSERT(layout.space_offset({level, 0}, 0) == end);
    const std::uint64_t last = layout.space_pages(level) - 1;
    RC_ASSERT(layout.space_offset({level, last}, 1) == end + (2 * last + 1) * 4096);
    end += (last + 1) * 8192;
    const std::uint64_t below = level == 0 ? layout.blocks() : layout.space_pages(level - 1);
    const std::uint64_t unit = level == 0 ? MDFS_BITS_PER_PAGE : MDFS_ENTRIES_PER_PAGE;
    RC_ASSERT(layout.space_pages(level) == (below + unit - 1) / unit);
  }
  RC_ASSERT(layout.first_usable() * block_size >= end);
  RC_ASSERT(layout.first_usable() * block_size % MDFS_NODE_SIZE == 0u);
  RC_ASSERT(layout.metadata_end() < layout.end_usable());
}

RC_GTEST_PROP(BitmapTest, FillsAndCountsLikeAPlainArray, (std::uint64_t seed)) {
  Samples samples(seed);
  ByteVector page(MDFS_SECTOR);
  std::vector<bool> plain(MDFS_BITS_PER_PAGE);
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t first = samples.number(0, MDFS_BITS_PER_PAGE);
    const std::uint64_t count = std::min(MDFS_BITS_PER_PAGE - first, samples.number(0, samples.coin() ? 20 : 9999));
    const bool in_use = samples.coin();
    bitmap_fill(page, first, count, in_use);
    for (std::uint64_t bit = first; bit < first + count; ++bit) plain[bit] = in_use;
  }
  const std::uint64_t bits = samples.number(0, MDFS_BITS_PER_PAGE);
  RC_ASSERT(bitmap_free(page, bits) == static_cast<std::uint64_t>(std::count(
                                           plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(bits), false)));
  for (std::uint64_t bit = 0; bit < MDFS_BITS_PER_PAGE; ++bit) RC_ASSERT(bitmap_get(page, bit) == plain[bit]);
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t first = samples.number(0, MDFS_BITS_PER_PAGE);
    const std::uint64_t count = std::min(MDFS_BITS_PER_PAGE - first, samples.number(0, samples.coin() ? 20 : 9999));
    const auto begin = plain.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    RC_ASSERT(bitmap_all_set(page, first, count) == std::all_of(begin, end, [](bool in_use) { return in_use; }));
  }
}

TEST(BitmapTest, AnEmptyDiskHasAllUsableBlocksFreeAndNoOthers) {
  for (const std::uint64_t bytes : {4ull << 20, 128ull << 20, (128ull << 20) + MDFS_LABEL_AREA, 1000ull << 20}) {
    const DiskLayout layout = layout_for(4096, bytes);
    std::uint64_t free_blocks = 0;
    for (std::uint64_t page = 0; page < layout.space_pages(0); ++page) {
      ByteVector bytes_of_page(MDFS_SECTOR);
      make_empty_bitmap(layout, page, bytes_of_page);
      const SpaceEntry entry = make_space_entry(bytes_of_page, 0, bitmap_free(bytes_of_page));
      EXPECT_TRUE(check_bitmap(layout, page, entry, bytes_of_page).ok());
      free_blocks += entry.free_blocks;
    }
    EXPECT_EQ(free_blocks, layout.usable_blocks()) << bytes;
  }
}

TEST(BitmapTest, EachCheckIsReportedByItsName) {
  const DiskLayout layout = layout_for(4096, 16 << 20);
  ByteVector page(MDFS_SECTOR);
  make_empty_bitmap(layout, 0, page);
  SpaceEntry entry = make_space_entry(page, 1, bitmap_free(page));
  EXPECT_EQ(check_name(check_bitmap(layout, 0, entry, ConstBytes(page).first(100))), "space.size");
  entry.free_blocks += 1;
  EXPECT_EQ(check_name(check_bitmap(layout, 0, entry, page)), "space.free-count");
  entry.crc32c ^= 1;
  EXPECT_EQ(check_name(check_bitmap(layout, 0, entry, page)), "space.checksum");
  for (const std::uint64_t bit : {std::uint64_t{0}, layout.end_usable(), layout.blocks(), std::uint64_t{32767}}) {
    make_empty_bitmap(layout, 0, page);
    bitmap_set(page, bit, false);
    EXPECT_EQ(check_name(check_bitmap(layout, 0, make_space_entry(page, 0, bitmap_free(page)), page)),
              "space.permanent");
  }
}

TEST(SpacePageTest, ReadsBackAsItWasWrittenAndChecksItsSum) {
  const DiskLayout layout = layout_for(4096, std::uint64_t{1} << 40);
  ASSERT_EQ(layout.space_levels(), 3u);
  std::vector<SpaceEntry> entries(MDFS_ENTRIES_PER_PAGE);
  for (std::uint32_t i = 0; i < entries.size(); ++i) entries[i] = {i * 77, i % 2, i};
  ByteVector page(MDFS_SECTOR);
  encode_space_page(entries, page);
  const SpaceEntry good = make_space_entry(page, 1, 255 * 128);
  const auto decoded = decode_space_page(layout, {1, 0}, good, page);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(*decoded, entries);
  SpaceEntry wrong = good;
  wrong.free_blocks = 1;
  EXPECT_EQ(check_name(decode_space_page(layout, {1, 0}, wrong, page)), "space.free-count");
  entries[3].place = 2;
  encode_space_page(entries, page);
  EXPECT_EQ(check_name(decode_space_page(layout, {1, 0}, make_space_entry(page, 0, 255 * 128), page)), "space.entry");
}

TEST(RingTest, EightGenerationsInARowNeverShareASlotWithTheThreeBefore) {
  for (std::uint64_t g = 1; g < 9; ++g) {
    EXPECT_LT(ring_slot(g, MDFS_SLOT_COMMITTED), MDFS_RING_SLOTS);
    for (std::uint64_t later = g + 1; later < g + 4; ++later)
      for (const std::uint32_t a : {MDFS_SLOT_PREPARED, MDFS_SLOT_COMMITTED})
        for (const std::uint32_t b : {MDFS_SLOT_PREPARED, MDFS_SLOT_COMMITTED})
          EXPECT_NE(ring_slot(g, a), ring_slot(later, b));
  }
}

}  // namespace
}  // namespace mdfs::format
