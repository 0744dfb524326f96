// Which blocks of one disk are in use: bitmaps that are loaded page by page, searched and changed in memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "format/layout.h"

namespace mdfs::alloc {

// Of which one space page says what is free.
inline constexpr std::uint64_t kPageBlocks = MDFS_BITS_PER_PAGE;

// A half-open range of blocks of one disk.
struct BlockRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
  bool empty() const { return begin >= end; }
};

// Ranges that a search goes around: begin -> end, disjoint.
using AvoidedRanges = std::map<std::uint64_t, std::uint64_t>;

// What a search found: a first block, nothing, or that a bitmap page must be loaded before it can go on.
struct Search {
  enum class Kind : std::uint8_t { kFound, kNone, kNeedPage };
  Kind kind = Kind::kNone;
  std::uint64_t value = 0;   // block or page
  std::uint64_t blocks = 0;  // of a hole: how long it is
};

// The free space of one disk. A page has two bitmaps: `disk`, what the next commit writes, and `busy`, what a search
// must not give out: in use, taken but not yet published, or freed but still held by a committed state. So a block
// taken and never published is free again after a crash, and `disk` is always a subset of `busy`.
// A run never crosses a bitmap page (128 MiB with 4 KiB blocks).
// Pure: no I/O, no thread contract (the owner locks). Changing a run needs its page loaded, else the program ends.
class SpaceMap {
 public:
  // free_blocks: of each bitmap page, as the space pages say. The page that holds the end of the metadata region must
  // be installed before counts are asked for (see boundary_page()).
  SpaceMap(const format::DiskLayout& layout, std::uint64_t zone_blocks, const std::vector<std::uint64_t>& free_blocks);

  const format::DiskLayout& layout() const { return layout_; }
  std::uint64_t zone_blocks() const { return zone_blocks_; }
  std::uint64_t page_count() const { return pages_.size(); }
  BlockRange metadata_range() const { return {layout_.first_usable(), layout_.metadata_end()}; }
  BlockRange data_range() const { return {layout_.metadata_end(), end_}; }

  // ---- another size (space_map_resize.cc)
  // Pages that must be loaded, and stay so, to change the size from one layout to the other: [first, last].
  struct Pages {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  static Pages edge_pages(const format::DiskLayout& from, const format::DiskLayout& to);
  // From now on nothing at or behind this block is given out or counts as free; at most end_usable(), behind the
  // metadata region. The page of `end` is loaded.
  void set_end(std::uint64_t end);
  std::uint64_t end() const { return end_; }
  // Blocks at or behind end() that are in use or taken.
  std::uint64_t busy_behind() const;
  // Blocks in use or taken, of the whole disk.
  std::uint64_t busy_blocks() const;
  // The disk has this size now; the edge pages are loaded. Larger: by the two label areas at its end at least, whose
  // old blocks are taken until somebody releases them; bitmaps of pages that come are blank. Smaller: end() is that of
  // the new layout, and nothing is busy behind it.
  void resize(const format::DiskLayout& layout);

  // The page shared by metadata region and data, if there is one.
  std::optional<std::uint64_t> boundary_page() const;
  bool loaded(std::uint64_t page) const { return pages_[page].bits != nullptr; }
  // Damaged: nothing is given out of it, and freeing in it changes nothing.
  bool broken(std::uint64_t page) const { return pages_[page].broken; }
  // A page as it is on the disk, MDFS_SECTOR bytes. Does nothing if it is loaded already.
  void install(std::uint64_t page, ConstBytes bitmap);
  void set_broken(std::uint64_t page);
  // A pinned page stays in memory.
  void pin(std::uint64_t page) { ++pages_[page].pins; }
  void unpin(std::uint64_t page);
  std::uint64_t loaded_pages() const { return loaded_pages_; }
  // Forgets unpinned pages in which both bitmaps agree and equal the disk's, until at most `keep` are loaded.
  void shrink(std::uint64_t keep);

  bool is_free(std::uint64_t block, std::uint64_t blocks) const;       // all of it
  bool is_published(std::uint64_t block, std::uint64_t blocks) const;  // part of the volume, all of it
  bool is_taken(std::uint64_t block, std::uint64_t blocks) const;      // busy and not published, all of it

  void take(std::uint64_t block, std::uint64_t blocks);     // free -> taken
  void release(std::uint64_t block, std::uint64_t blocks);  // taken or freed -> free
  void publish(std::uint64_t block, std::uint64_t blocks);  // taken -> published
  void free(std::uint64_t block, std::uint64_t blocks);     // published -> busy until released

  // The first `blocks` free contiguous blocks inside `range`, around `avoid` (may be null).
  Search find(BlockRange range, std::uint64_t blocks, const AvoidedRanges* avoid) const;
  enum class Fit : std::uint8_t { kSmallest, kLargest };
  // The smallest or the largest hole of at least so many blocks inside `range`, as far as it lies between `avoid` (may
  // be null): its first block and its length. The first one of those that are as long. A hole ends with its bitmap
  // page.
  Search find_hole(BlockRange range, std::uint64_t blocks, const AvoidedRanges* avoid, Fit fit) const;
  // The first hole of at least so many blocks inside `range`, as far as it lies between `avoid` (may be null): its
  // first block and its length. A hole goes on from one bitmap page to the next; pages all free or all in use need not
  // be in memory.
  Search next_hole(BlockRange range, std::uint64_t blocks, const AvoidedRanges* avoid) const;
  // Of the data of a loaded page, the range of so many blocks that has the fewest in use and lies between `avoid`:
  // its first block, and how many of it are in use (in `blocks`). The first one of those with as few.
  Search emptiest_range(std::uint64_t page, std::uint64_t blocks, const AvoidedRanges& avoid) const;
  // Pages by their free data blocks, those with most first; at most so many, none without any.
  std::vector<std::uint64_t> emptiest_pages(std::size_t most) const;
  // Where a new group begins: the first block of the zone of a free data block drawn by `random` (uniform 64 bits).
  std::uint64_t draw_zone(std::uint64_t random) const;
  // The first data block of the lowest page with so many free data blocks, or of them all if no page has as many.
  std::uint64_t first_zone(std::uint64_t blocks) const;

  // Blocks that a search could give out.
  std::uint64_t metadata_free() const { return metadata_free_; }
  std::uint64_t data_free() const { return data_free_; }
  // Blocks not in use as the disk will say.
  std::uint64_t disk_free() const { return disk_free_; }
  std::uint64_t page_disk_free(std::uint64_t page) const { return pages_[page].disk_free; }
  // How many blocks of `range` are in use as the disk will say (kFound: the number), or the page to load first. Blocks
  // of a broken page are in use.
  Search used_in(BlockRange range) const;

  // Pages whose `disk` bitmap changed since clear_dirty(), ascending.
  std::vector<std::uint64_t> dirty_pages() const;
  bool dirty() const { return !dirty_.empty(); }
  // Counts as changed, though it is not. Loaded.
  void touch(std::uint64_t page) { set_dirty(page); }
  void copy_disk_bitmap(std::uint64_t page, MutableBytes out) const;  // MDFS_SECTOR bytes
  void clear_dirty();                                                 // of all pages

 private:
  static constexpr std::size_t kWords = MDFS_BITS_PER_PAGE / 64;
  using Words = std::array<std::uint64_t, kWords>;
  struct Bits {
    Words disk{};
    Words busy{};
  };
  struct Page {
    std::unique_ptr<Bits> bits;
    std::uint32_t disk_free = 0;
    std::uint32_t busy_free = 0;
    mutable std::uint32_t longest = MDFS_BITS_PER_PAGE;  // no free run of the page is longer
    std::uint32_t pins = 0;
    bool dirty = false;
    bool broken = false;
  };

  Page& page_of(std::uint64_t block, std::uint64_t blocks);
  const Page& page_of(std::uint64_t block, std::uint64_t blocks) const;
  void count_free(std::uint64_t block, std::uint64_t blocks, bool now_free);
  void set_dirty(std::uint64_t page);
  std::uint64_t page_data_free(std::uint64_t page) const;
  void grow(const format::DiskLayout& layout);
  void cut(const format::DiskLayout& layout);
  // Free blocks of a page before end().
  std::uint64_t free_before_end(std::uint64_t page) const;
  // The part of a page that may be given out.
  BlockRange usable_in_page(std::uint64_t page) const;
  Search find_in_page(std::uint64_t page, BlockRange range, std::uint64_t blocks, const AvoidedRanges* avoid) const;

  format::DiskLayout layout_;
  std::uint64_t zone_blocks_;
  std::uint64_t end_;
  std::vector<Page> pages_;
  std::uint64_t metadata_free_ = 0;
  std::uint64_t data_free_ = 0;
  std::uint64_t disk_free_ = 0;
  std::uint64_t boundary_metadata_free_ = 0;  // of the boundary page
  std::uint64_t loaded_pages_ = 0;
  std::vector<std::uint64_t> dirty_;  // pages, in the order of their first change
  std::uint64_t shrink_cursor_ = 0;
};

}  // namespace mdfs::alloc
