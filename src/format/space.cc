// Space pages.
// SPDX-License-Identifier: Apache-2.0
#include "format/space.h"

#include <algorithm>
#include <bit>

#include "base/crc32c.h"
#include "format/fields.h"

namespace mdfs::format {
namespace {

constexpr std::uint64_t kBitsPerWord = 64;

std::uint64_t entries_in(const DiskLayout& layout, SpacePage page) {
  const std::uint64_t first = page.page * MDFS_ENTRIES_PER_PAGE;
  return std::min<std::uint64_t>(MDFS_ENTRIES_PER_PAGE, layout.space_pages(page.level - 1) - first);
}

// The part of [first, last) that lies in `page`, in bits of it.
struct BitRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};
BitRange bits_in_page(std::uint64_t first, std::uint64_t last, std::uint64_t page) {
  const std::uint64_t start = page * MDFS_BITS_PER_PAGE;
  const std::uint64_t from = std::max(first, start);
  const std::uint64_t to = std::min(last, start + MDFS_BITS_PER_PAGE);
  return from < to ? BitRange{from - start, to - from} : BitRange{};
}

// The bits of a page that are set for ever: labels and space pages in front, labels and nothing behind.
std::array<BitRange, 2> permanent(const DiskLayout& layout, std::uint64_t page) {
  return {bits_in_page(0, layout.first_usable(), page), bits_in_page(layout.end_usable(), UINT64_MAX, page)};
}

}  // namespace

bool bitmap_get(ConstBytes page, std::uint64_t bit) {
  return ((load_le<std::uint8_t>(page, bit / 8) >> (bit % 8)) & 1) != 0;
}

void bitmap_set(MutableBytes page, std::uint64_t bit, bool in_use) {
  const auto mask = static_cast<std::uint8_t>(1u << (bit % 8));
  const auto old = load_le<std::uint8_t>(page, bit / 8);
  store_le<std::uint8_t>(page, bit / 8, static_cast<std::uint8_t>(in_use ? old | mask : old & ~mask));
}

void bitmap_fill(MutableBytes page, std::uint64_t first, std::uint64_t count, bool in_use) {
  MDFS_CHECK(count <= page.size() * 8 && first <= page.size() * 8 - count);
  const std::uint64_t end = first + count;
  while (first < end && first % 8 != 0) bitmap_set(page, first++, in_use);
  const std::uint64_t whole = (end - first) / 8;
  const MutableBytes middle = page.subspan(first / 8, whole);
  std::fill(middle.begin(), middle.end(), in_use ? std::byte{0xff} : std::byte{0});
  for (first += whole * 8; first < end; ++first) bitmap_set(page, first, in_use);
}

bool bitmap_all_set(ConstBytes page, std::uint64_t first, std::uint64_t count) {
  MDFS_CHECK(count <= page.size() * 8 && first <= page.size() * 8 - count);
  const std::uint64_t end = first + count;
  for (; first < end && first % 8 != 0; ++first)
    if (!bitmap_get(page, first)) return false;
  for (; first + kBitsPerWord <= end; first += kBitsPerWord)
    if (load_le<std::uint64_t>(page, first / 8) != UINT64_MAX) return false;
  for (; first < end; ++first)
    if (!bitmap_get(page, first)) return false;
  return true;
}

std::uint64_t bitmap_free(ConstBytes page, std::uint64_t bits) {
  MDFS_CHECK(bits <= page.size() * 8);
  std::uint64_t used = 0;
  std::uint64_t bit = 0;
  for (; bit + kBitsPerWord <= bits; bit += kBitsPerWord)
    used += static_cast<std::uint64_t>(std::popcount(load_le<std::uint64_t>(page, bit / 8)));
  for (; bit < bits; ++bit) used += bitmap_get(page, bit) ? 1 : 0;
  return bits - used;
}

void make_empty_bitmap(const DiskLayout& layout, std::uint64_t page, MutableBytes out) {
  MDFS_CHECK(out.size() == MDFS_SECTOR);
  std::fill(out.begin(), out.end(), std::byte{0});
  for (const BitRange& range : permanent(layout, page)) bitmap_fill(out, range.first, range.count, true);
}

Status check_bitmap(const DiskLayout& layout, std::uint64_t page, const SpaceEntry& entry, ConstBytes bytes) {
  MDFS_FORMAT_REQUIRE(bytes.size() == MDFS_SECTOR, "space.size");
  MDFS_FORMAT_REQUIRE(crc32c(bytes) == entry.crc32c, "space.checksum");
  MDFS_FORMAT_REQUIRE(bitmap_free(bytes) == entry.free_blocks, "space.free-count");
  for (const BitRange& range : permanent(layout, page))
    MDFS_FORMAT_REQUIRE(bitmap_all_set(bytes, range.first, range.count), "space.permanent");
  return {};
}

void encode_space_page(const std::vector<SpaceEntry>& entries, MutableBytes out) {
  MDFS_CHECK(out.size() == MDFS_SECTOR && entries.size() <= MDFS_ENTRIES_PER_PAGE);
  std::fill(out.begin(), out.end(), std::byte{0});
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::size_t base = i * sizeof(mdfs_space_entry);
    MDFS_PUT(out, base, mdfs_space_entry, crc32c, entries[i].crc32c);
    MDFS_PUT(out, base, mdfs_space_entry, slot, entries[i].place);
    MDFS_PUT(out, base, mdfs_space_entry, free_blocks, entries[i].free_blocks);
  }
}

Result<std::vector<SpaceEntry>> decode_space_page(const DiskLayout& layout, SpacePage page, const SpaceEntry& entry,
                                                  ConstBytes bytes) {
  MDFS_CHECK(page.level > 0 && page.level < layout.space_levels() && page.page < layout.space_pages(page.level));
  MDFS_FORMAT_REQUIRE(bytes.size() == MDFS_SECTOR, "space.size");
  MDFS_FORMAT_REQUIRE(crc32c(bytes) == entry.crc32c, "space.checksum");
  std::vector<SpaceEntry> entries(entries_in(layout, page));
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::size_t base = i * sizeof(mdfs_space_entry);
    entries[i] = {MDFS_GET(bytes, base, mdfs_space_entry, crc32c), MDFS_GET(bytes, base, mdfs_space_entry, slot),
                  MDFS_GET(bytes, base, mdfs_space_entry, free_blocks)};
    MDFS_FORMAT_REQUIRE(entries[i].place < 2 && entries[i].free_blocks <= layout.blocks(), "space.entry");
    sum += entries[i].free_blocks;
  }
  MDFS_FORMAT_REQUIRE(sum == entry.free_blocks, "space.free-count");
  return entries;
}

SpaceEntry make_space_entry(ConstBytes page, std::uint32_t place, std::uint64_t free_blocks) {
  MDFS_CHECK(page.size() == MDFS_SECTOR && place < 2);
  return {crc32c(page), place, free_blocks};
}

}  // namespace mdfs::format
