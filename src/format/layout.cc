// The layout of a disk.
// SPDX-License-Identifier: Apache-2.0
#include "format/layout.h"

#include <algorithm>
#include <bit>

namespace mdfs::format {
namespace {

constexpr std::uint64_t kMaxRegionBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMinZones = 32;
constexpr std::uint64_t kMetadataShare = 64;
constexpr std::uint64_t kMinNodes = 32;
constexpr std::uint64_t kLargestShare = 4;
constexpr std::uint64_t kMaxDiskBytes = std::uint64_t{1} << 62;
constexpr std::uint64_t kRoomFactor = 16;

}  // namespace

bool valid_disk_blocks(std::uint32_t block_size, std::uint64_t blocks) {
  const auto bytes = checked_mul(block_size, blocks);
  return bytes && blocks <= Address::kMaxBlock && *bytes >= MDFS_MIN_DISK_SIZE && *bytes <= kMaxDiskBytes &&
         *bytes % MDFS_LABEL_AREA == 0;
}

std::uint64_t disk_blocks(std::uint32_t block_size, std::uint64_t disk_bytes) {
  return align_down(disk_bytes, MDFS_LABEL_AREA) / block_size;
}

std::uint64_t default_zone_blocks(std::uint32_t block_size, std::uint64_t disk_blocks) {
  const std::uint64_t largest = kMaxRegionBytes / block_size;
  return std::min(std::bit_floor(std::max<std::uint64_t>(disk_blocks / kMinZones, 1)), largest);
}

std::uint64_t default_room_blocks(std::uint32_t block_size, std::uint64_t disk_blocks) {
  const std::uint64_t largest =
      align_down(std::min(kMaxDiskBytes / block_size, Address::kMaxBlock), MDFS_LABEL_AREA / block_size);
  return disk_blocks > largest / kRoomFactor ? largest : kRoomFactor * disk_blocks;
}

std::uint64_t default_metadata_blocks(std::uint32_t block_size, std::uint64_t disk_blocks) {
  const std::uint64_t unit = node_blocks(block_size);
  std::uint64_t blocks = std::max(disk_blocks / kMetadataShare, kMinNodes * unit);
  blocks = std::min({blocks, disk_blocks / kLargestShare, kMaxRegionBytes / block_size});
  return align_down(blocks, unit);
}

std::uint64_t whole_metadata_blocks(std::uint32_t block_size, std::uint64_t disk_blocks, std::uint64_t room_blocks) {
  const DiskLayout bare(block_size, disk_blocks, 0, room_blocks);
  const std::uint64_t unit = node_blocks(block_size);
  if (!bare.consistent() || bare.usable_blocks() <= unit) return 0;
  return align_down(bare.usable_blocks() - unit, unit);
}

DiskLayout::DiskLayout(std::uint32_t block_size, std::uint64_t disk_blocks, std::uint64_t metadata_blocks,
                       std::uint64_t room_blocks)
    : block_size_(block_size),
      blocks_(disk_blocks),
      metadata_blocks_(metadata_blocks),
      room_blocks_(room_blocks == 0 ? disk_blocks : room_blocks) {
  MDFS_CHECK(valid_block_size(block_size) && blocks_ <= room_blocks_ && room_blocks_ <= Address::kMaxBlock + 1);
  std::uint64_t total = 0;
  std::uint64_t count = std::max<std::uint64_t>(ceil_div(blocks_, MDFS_BITS_PER_PAGE), 1);
  std::uint64_t room = std::max<std::uint64_t>(ceil_div(room_blocks_, MDFS_BITS_PER_PAGE), 1);
  for (;;) {
    pages_.push_back(count);
    pages_before_.push_back(total);
    total += room;
    if (room == 1) break;
    count = ceil_div(count, MDFS_ENTRIES_PER_PAGE);
    room = ceil_div(room, MDFS_ENTRIES_PER_PAGE);
  }
  const std::uint64_t end = 2 * MDFS_LABEL_AREA + 2 * MDFS_SECTOR * total;
  first_usable_ = align_up(end, std::max(block_size_, MDFS_NODE_SIZE)) / block_size_;
}

DiskLayout DiskLayout::resized(std::uint64_t disk_blocks) const {
  return {block_size_, disk_blocks, metadata_blocks_, room_blocks_};
}

bool DiskLayout::consistent() const {
  const std::uint64_t end_area = kEndAreaBytes / block_size_;
  const auto used = checked_add(first_usable_ + end_area, metadata_blocks_);
  return used && *used < blocks_;
}

std::uint64_t DiskLayout::label_offset(unsigned number) const {
  MDFS_CHECK(number < MDFS_LABELS_PER_DISK);
  const std::uint64_t area = std::uint64_t{MDFS_LABEL_AREA} * (number % 2);
  return number < 2 ? area : bytes() - kEndAreaBytes + area;
}

std::uint64_t DiskLayout::slot_offset(unsigned number, unsigned ring_slot) const {
  MDFS_CHECK(ring_slot < MDFS_RING_SLOTS);
  return label_offset(number) + std::uint64_t{MDFS_SLOT_SIZE} * (1 + ring_slot);
}

std::uint64_t DiskLayout::space_offset(SpacePage page, unsigned place) const {
  MDFS_CHECK(page.level < pages_.size() && page.page < pages_[page.level] && place < 2);
  return 2 * MDFS_LABEL_AREA + MDFS_SECTOR * (2 * (pages_before_[page.level] + page.page) + place);
}

std::uint64_t DiskLayout::bitmap_blocks(std::uint64_t page) const {
  MDFS_CHECK(page < pages_[0]);
  return std::min<std::uint64_t>(MDFS_BITS_PER_PAGE, blocks_ - page * MDFS_BITS_PER_PAGE);
}

bool continues(const Run& run, const Run& next) {
  return run.disk == next.disk && run.end() == next.block &&
         DiskLayout::bitmap_page(run.block) == DiskLayout::bitmap_page(next.block);
}

std::vector<Run> parts_on_pages(const Run& run) {
  std::vector<Run> parts;
  for (Run rest = run; rest.blocks > 0;) {
    const std::uint64_t left = MDFS_BITS_PER_PAGE - DiskLayout::bitmap_bit(rest.block);
    const auto blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(rest.blocks, left));
    parts.push_back({rest.disk, rest.block, blocks});
    rest.block += blocks;
    rest.blocks -= blocks;
  }
  return parts;
}

}  // namespace mdfs::format
