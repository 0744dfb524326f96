// Fuzz target: space pages of every level. The first bytes choose the disk; checksum and sum are made right.
// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"
#include "format/fields.h"
#include "format/space.h"
#include "fuzz.h"

using namespace mdfs;

namespace {

void bitmap(const format::DiskLayout& layout, std::uint64_t page, ByteVector& bytes) {
  (void)format::check_bitmap(layout, page, {crc32c(bytes), 0, format::bitmap_free(bytes)}, bytes).ok();
  // With the permanent blocks set as they must be, any page is one.
  ByteVector fixed(MDFS_SECTOR);
  format::make_empty_bitmap(layout, page, fixed);
  for (std::size_t i = 0; i < bytes.size(); ++i) fixed[i] |= bytes[i];
  const std::uint64_t free = format::bitmap_free(fixed);
  MDFS_CHECK(format::check_bitmap(layout, page, format::make_space_entry(fixed, 1, free), fixed).ok());
  MDFS_CHECK(free <= layout.bitmap_blocks(page));
}

void above(const format::DiskLayout& layout, format::SpacePage page, const ByteVector& bytes) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < MDFS_ENTRIES_PER_PAGE; ++i)
    sum += MDFS_GET(bytes, i * sizeof(mdfs_space_entry), mdfs_space_entry, free_blocks);
  const auto entries = format::decode_space_page(layout, page, {crc32c(bytes), 0, sum}, bytes);
  if (!entries.ok()) return;
  MDFS_CHECK(entries->size() <= layout.space_pages(page.level - 1));
  ByteVector again(MDFS_SECTOR);
  format::encode_space_page(*entries, again);
  const auto decoded = format::decode_space_page(layout, page, {crc32c(again), 0, sum}, again);
  MDFS_CHECK(decoded.ok() && *decoded == *entries);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Reader reader(fuzz::input(data, size));
  const std::uint32_t block_size = MDFS_MIN_BLOCK_SIZE << (reader.take<std::uint8_t>() % 5);
  const std::uint64_t blocks = format::disk_blocks(block_size, reader.take<std::uint32_t>() * std::uint64_t{1} << 20);
  if (!format::valid_disk_blocks(block_size, blocks)) return 0;
  const format::DiskLayout layout(block_size, blocks, format::default_metadata_blocks(block_size, blocks));
  const unsigned level = reader.take<std::uint8_t>() % layout.space_levels();
  const std::uint64_t page = reader.take<std::uint32_t>() % layout.space_pages(level);
  ByteVector bytes = fuzz::padded(reader.rest(), MDFS_SECTOR);
  if (level == 0) {
    bitmap(layout, page, bytes);
  } else {
    above(layout, {level, page}, bytes);
  }
  return 0;
}
