// The free space of one disk: bitmaps that are loaded page by page, searched and changed in memory.
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

// Blocks that one space page describes.
inline constexpr std::uint64_t kPageBlocks = MDFS_BITS_PER_PAGE;

// A half-open range of blocks of one disk.
struct BlockRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
  bool empty() const { return begin >= end; }
};

// Ranges that a search avoids: begin -> end, disjoint.
using AvoidedRanges = std::map<std::uint64_t, std::uint64_t>;

// The result of a search: a first block, nothing, or a bitmap page that must be loaded before the search can continue.
struct Search {
  enum class Kind : std::uint8_t { kFound, kNone, kNeedPage };
  Kind kind = Kind::kNone;
  std::uint64_t value = 0;   // block or page
  std::uint64_t blocks = 0;  // length of a hole
};

// The free space of one disk. A page has two bitmaps. `disk` is what the next commit writes. `busy` is what a search
// must avoid: blocks in use, taken but not published, or pending free. A block that was taken and never published is
// therefore free after a crash, and `disk` is always a subset of `busy`.
// A run never crosses a bitmap page (128 MiB with 4 KiB blocks). Pure; the owner locks. The page of a run must be
// loaded before the run is changed (abort).
class SpaceMap {
 public:
  // free_blocks: of each bitmap page, from the space pages. The page that holds the end of the metadata region must be
  // installed before counts are read (see boundary_page()).
  SpaceMap(const format::DiskLayout& layout, std::uint64_t zone_blocks, const std::vector<std::uint64_t>& free_blocks);

  const format::DiskLayout& layout() const { return layout_; }
  std::uint64_t zone_blocks() const { return zone_blocks_; }
  std::uint64_t page_count() const { return pages_.size(); }
  BlockRange metadata_range() const { return {layout_.first_usable(), layout_.metadata_end()}; }
  BlockRange data_range() const { return {layout_.metadata_end(), end_}; }

  // ---- another size (space_map_resize.cc)
  // The pages that must be loaded, and stay so, for a change from one layout to the other: [first, last].
  struct Pages {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  static Pages edge_pages(const format::DiskLayout& from, const format::DiskLayout& to);
  // Blocks at or behind this block are no longer given out, and do not count as free. `end` is at most end_usable(),
  // and lies behind the metadata region. The page of `end` must be loaded.
  void set_end(std::uint64_t end);
  std::uint64_t end() const { return end_; }
  // Blocks at or behind end() that are in use or taken.
  std::uint64_t busy_behind() const;
  // Blocks in use or taken, of the whole disk.
  std::uint64_t busy_blocks() const;
  // Gives the disk another size; the edge pages must be loaded. A larger disk has at least two label areas more. The
  // blocks of the old label areas stay taken until the caller releases them, and bitmaps of new pages are blank. For a
  // smaller disk end() must equal that of the new layout, with no busy block behind it.
  void resize(const format::DiskLayout& layout);

  // The page shared by metadata region and data, if there is one.
  std::optional<std::uint64_t> boundary_page() const;
  bool loaded(std::uint64_t page) const { return pages_[page].bits != nullptr; }
  // Damaged: no blocks are allocated in the page, and freeing in it changes nothing.
  bool broken(std::uint64_t page) const { return pages_[page].broken; }
  // Installs a page from the disk, MDFS_SECTOR bytes. Does nothing if the page is loaded.
  void install(std::uint64_t page, ConstBytes bitmap);
  void set_broken(std::uint64_t page);
  // A pinned page stays in memory.
  void pin(std::uint64_t page) { ++pages_[page].pins; }
  void unpin(std::uint64_t page);
  std::uint64_t loaded_pages() const { return loaded_pages_; }
  // Unloads unpinned pages whose two bitmaps agree and equal the disk's, until at most `keep` are loaded.
  void shrink(std::uint64_t keep);

  bool is_free(std::uint64_t block, std::uint64_t blocks) const;       // all of it
  bool is_published(std::uint64_t block, std::uint64_t blocks) const;  // all of it is part of the volume
  bool is_taken(std::uint64_t block, std::uint64_t blocks) const;      // all of it is busy and not published

  void take(std::uint64_t block, std::uint64_t blocks);     // free -> taken
  void release(std::uint64_t block, std::uint64_t blocks);  // taken or pending free -> free
  void publish(std::uint64_t block, std::uint64_t blocks);  // taken -> published
  void free(std::uint64_t block, std::uint64_t blocks);     // published -> pending free

  // The first `blocks` contiguous free blocks inside `range`, outside of `avoid` (may be null).
  Search find(BlockRange range, std::uint64_t blocks, const AvoidedRanges* avoid) const;
  enum class Fit : std::uint8_t { kSmallest, kLargest };
  // The smallest or the largest hole of at least so many blocks inside `range` and outside of `avoid` (may be null),
  // the first of equal ones: its first block and its length. A hole ends with its bitmap page.
  Search find_hole(BlockRange range, std::uint64_t blocks, const AvoidedRanges* avoid, Fit fit) const;
  // The first hole of at least so many blocks inside `range` and outside of `avoid` (may be null): its first block and
  // its length. A hole may continue in the next bitmap page. Pages that are all free or all in use need not be loaded.
  Search next_hole(BlockRange range, std::uint64_t blocks, const AvoidedRanges* avoid) const;
  // The data range of so many blocks in a loaded page that has the fewest in use and lies outside of `avoid`, the first
  // of equal ones: its first block, and its blocks in use (in `blocks`).
  Search emptiest_range(std::uint64_t page, std::uint64_t blocks, const AvoidedRanges& avoid) const;
  // Pages with free data blocks, those with most first; at most `most`.
  std::vector<std::uint64_t> emptiest_pages(std::size_t most) const;
  // The start of a new group: the first block of the zone of a free data block. `random` (uniform 64 bits) draws the
  // block.
  std::uint64_t draw_zone(std::uint64_t random) const;
  // The first data block of the lowest page with so many free data blocks; without such a page, the first of all.
  std::uint64_t first_zone(std::uint64_t blocks) const;

  // Blocks that a search may return.
  std::uint64_t metadata_free() const { return metadata_free_; }
  std::uint64_t data_free() const { return data_free_; }
  // Blocks not in use after the next commit.
  std::uint64_t disk_free() const { return disk_free_; }
  std::uint64_t page_disk_free(std::uint64_t page) const { return pages_[page].disk_free; }
  // The blocks of `range` in use after the next commit (kFound: their number), or the page to load first. Blocks of a
  // broken page count as in use.
  Search used_in(BlockRange range) const;

  // Pages whose `disk` bitmap changed since clear_dirty(), ascending.
  std::vector<std::uint64_t> dirty_pages() const;
  bool dirty() const { return !dirty_.empty(); }
  // Marks a loaded page as changed.
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
    mutable std::uint32_t longest = MDFS_BITS_PER_PAGE;  // upper bound of the free runs of the page
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
  // The part of a page in which blocks may be allocated.
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
