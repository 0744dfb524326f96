// The parts of a disk: labels, space pages, metadata region, data. Pure functions of the label's numbers.
//
//   | label 0 | label 1 | space pages | metadata region | data ...        | label 2 | label 3 |
//   0        128 KiB  256 KiB                                        end - 256 KiB          end
//
// `end` is the size of the disk rounded down to 128 KiB; the rest of the disk is not used. Where the space pages lie
// and end follows from the largest size that the disk may be given (`room_blocks`), so that it grows and shrinks
// without moving anything but the labels at its end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/checked.h"
#include "format/pointer.h"
#include "format/run.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

constexpr bool valid_block_size(std::uint64_t block_size) {
  return is_power_of_two(block_size) && block_size >= MDFS_MIN_BLOCK_SIZE && block_size <= MDFS_MAX_BLOCK_SIZE;
}
// At least MDFS_MIN_DISK_SIZE, whole units of MDFS_LABEL_AREA, and addressable (48 bits of block, 62 of bytes).
// block_size must be valid.
bool valid_disk_blocks(std::uint32_t block_size, std::uint64_t blocks);
// Blocks of a disk of this many bytes (rounded down to 128 KiB).
std::uint64_t disk_blocks(std::uint32_t block_size, std::uint64_t disk_bytes);

// Defaults of mkmdfs. disk_blocks is valid.
// Blocks of a zone: the largest power of two that leaves 32 zones on the disk, at least one block, at most 1 GiB.
std::uint64_t default_zone_blocks(std::uint32_t block_size, std::uint64_t disk_blocks);
// Blocks that the space pages have room for: 16 times the disk, or the largest disk there can be.
std::uint64_t default_room_blocks(std::uint32_t block_size, std::uint64_t disk_blocks);
// Blocks of the metadata region: a 64th of the disk in whole nodes, at least 32 nodes (fewer where that is more than a
// quarter), at most 1 GiB.
std::uint64_t default_metadata_blocks(std::uint32_t block_size, std::uint64_t disk_blocks);

// Blocks of the metadata region of a disk for tree nodes alone: all but one node, in whole nodes; 0: the disk is too
// small. room_blocks as in DiskLayout.
std::uint64_t whole_metadata_blocks(std::uint32_t block_size, std::uint64_t disk_blocks, std::uint64_t room_blocks);

// Blocks that a tree node takes.
constexpr std::uint64_t node_blocks(std::uint32_t block_size) { return ceil_div(MDFS_NODE_SIZE, block_size); }

// A space page of a disk.
struct SpacePage {
  unsigned level = 0;      // 0 = bitmap
  std::uint64_t page = 0;  // within the level
  auto operator<=>(const SpacePage&) const = default;
};

// The layout of one disk. Immutable; cheap to copy.
class DiskLayout {
 public:
  // block_size is valid; disk_blocks at most room_blocks, which is at most 2^48; room_blocks 0: as many as disk_blocks.
  DiskLayout(std::uint32_t block_size, std::uint64_t disk_blocks, std::uint64_t metadata_blocks,
             std::uint64_t room_blocks = 0);
  // The same disk when it has another size, at most room_blocks().
  DiskLayout resized(std::uint64_t disk_blocks) const;

  // True if the parts fit on the disk and leave at least one data block. False for labels of a damaged disk.
  bool consistent() const;

  std::uint32_t block_size() const { return block_size_; }
  std::uint64_t blocks() const { return blocks_; }
  std::uint64_t bytes() const { return blocks_ * block_size_; }
  std::uint64_t room_blocks() const { return room_blocks_; }

  // Byte offset of label `number` (0..3), and of a commit slot in its ring (0..7).
  std::uint64_t label_offset(unsigned number) const;
  std::uint64_t slot_offset(unsigned number, unsigned ring_slot) const;

  // Levels of space pages, as many as the room wants; the top level has one page. Pages that stand for blocks of the
  // disk exist; there is room for more.
  unsigned space_levels() const { return static_cast<unsigned>(pages_.size()); }
  std::uint64_t space_pages(unsigned level) const { return pages_[level]; }
  // Byte offset of one of the two places (0 or 1) of a page; the same for every size of the disk.
  std::uint64_t space_offset(SpacePage page, unsigned place) const;
  // The page and the bit that stand for a block.
  static std::uint64_t bitmap_page(std::uint64_t block) { return block / MDFS_BITS_PER_PAGE; }
  static std::uint64_t bitmap_bit(std::uint64_t block) { return block % MDFS_BITS_PER_PAGE; }
  // Blocks that a bitmap page stands for: MDFS_BITS_PER_PAGE, fewer for the last.
  std::uint64_t bitmap_blocks(std::uint64_t page) const;

  // Blocks that may be given out are [first_usable, end_usable); all others are in use for ever.
  // [first_usable, metadata_end) is meant for tree nodes, [metadata_end, end_usable) for data.
  std::uint64_t first_usable() const { return first_usable_; }
  std::uint64_t metadata_end() const { return first_usable_ + metadata_blocks_; }
  std::uint64_t end_usable() const { return blocks_ - kEndAreaBytes / block_size_; }
  std::uint64_t usable_blocks() const { return end_usable() - first_usable(); }
  bool is_usable(std::uint64_t block, std::uint64_t count) const {
    return block >= first_usable() && block <= end_usable() && count <= end_usable() - block;
  }

 private:
  static constexpr std::uint64_t kEndAreaBytes = 2 * MDFS_LABEL_AREA;
  std::uint32_t block_size_;
  std::uint64_t blocks_;
  std::uint64_t metadata_blocks_;
  std::uint64_t room_blocks_;
  std::uint64_t first_usable_ = 0;
  std::vector<std::uint64_t> pages_;         // of a level, that exist
  std::vector<std::uint64_t> pages_before_;  // room for pages of lower levels
};

// The ring slot of a generation in the given state (MDFS_SLOT_*).
constexpr unsigned ring_slot(std::uint64_t generation, std::uint32_t state) {
  return static_cast<unsigned>(2 * (generation % (MDFS_RING_SLOTS / 2)) + (state == MDFS_SLOT_COMMITTED ? 1 : 0));
}

// A run of the allocator lies on one bitmap page. Does `next` continue `run` on the same disk and page, so that both
// may be one run?
bool continues(const Run& run, const Run& next);
// The parts of a run that lie on one bitmap page each.
std::vector<Run> parts_on_pages(const Run& run);

}  // namespace mdfs::format
