// Publishing: one transaction records staged extents in the extent map, and frees the blocks that they replace.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "engine/core.h"
#include "engine/write/stage.h"

namespace mdfs::engine {

// A strip that has been written, and its page.
struct StagedStrip {
  std::uint64_t page = 0;
  format::Strip strip;
};

// An extent that keeps its first bytes.
struct ShortenedExtent {
  geometry::Coord coord{};
  std::uint32_t bytes = 0;  // of the decoded extent
};

// The changes of one transaction to the records of one object. Made once inside store.transact(), by the holder of
// `publishing`, so that cached pages equal those of the tree. After the transaction update_cached_pages() brings the
// cached pages up to date.
class Publisher {
 public:
  Publisher(Core& core, const OpenObject& object, store::Transaction& transaction)
      : core_(core), object_(object), transaction_(transaction) {}

  // Replaces the records of extents (an extent without runs becomes a hole), and frees their parts in strips.
  Status publish(const std::vector<Staged>& extents);
  // Adds strips. Their bytes lie in no other strip. kBusy: a page has no free number.
  Status publish_strips(const std::vector<StagedStrip>& strips);
  // Cuts the parts of extents that lie in strips alone; nothing is written to the blocks that stay. kBusy: an extent
  // has a record, or a page has no free number.
  Status shorten_parts(const std::vector<ShortenedExtent>& extents);
  // Frees all records of an item kind with keys in [first, last]: pages of extents with their strips, or cells.
  Status free_items(std::uint64_t first, std::uint64_t last);
  // Frees the records of one page whose extents lie in the box (half-open).
  Status free_in_page(std::uint64_t page, const GridBox& box);
  // The members of the groups of these places are in no group then; parities and leavers are freed.
  Status dissolve_groups(std::uint64_t page, std::uint64_t places);
  // The parity of extents of a page, a bit each, which have records, but no copies, and are in no group. Its runs, its
  // bytes and their checksums.
  Status add_group(std::uint64_t page, std::uint64_t members, const StoredExtent& parity);
  // The parity of the group that has this place lies in the run now.
  Status move_parity(const geometry::PagePlace& place, const format::Runs& to);
  // Turns blocks of a cell into holes.
  Status punch_cell(std::uint64_t cell, std::uint32_t blocks);

  // The inode follows, with the size that has been published, of an object whose bytes do not lie in the tree.
  Status update_inode();
  // Bytes of blocks published less those freed.
  std::int64_t stored_bytes_change() const { return change_blocks_ * static_cast<std::int64_t>(object_.block_size); }
  // The changed pages; nulls: the page is gone.
  struct Page {
    std::shared_ptr<const format::ExtentPage> page;
    std::shared_ptr<const Strips> strips;
    // The same after a change. The page before the change may have other holders.
    std::shared_ptr<format::ExtentPage> own_page;
    std::shared_ptr<Strips> own_strips;
    std::shared_ptr<const format::CopyPage> copies;  // null: none
    std::shared_ptr<format::CopyPage> own_copies;
    std::set<unsigned> changed;  // numbers of strips
    bool is_ungrouped = false;   // extents may share parities that do not yet, or groups have leavers
  };
  using Pages = std::map<std::uint64_t, Page>;
  const Pages& pages() const { return pages_; }
  // Replaced extents that were contiguous on the disk that their placement names, with their former places.
  const std::vector<Home>& homes() const { return homes_; }

 private:
  Status publish_image(const std::vector<Staged>& extents);
  Status free_strips(std::uint64_t first_page, std::uint64_t last_page);
  Status publish_cells(const std::vector<Staged>& extents);
  Result<format::CellPieces> get_cell(std::uint64_t cell);
  void put_cell(std::uint64_t cell, const format::CellPieces& before, const format::CellPieces& now);
  void punch_blocks(format::FileCell& cell, std::uint32_t blocks);
  // The staged blocks get the places of `runs`, in order, as blocks of `cell`. `old`: what the cell was; `other`: where
  // the other pieces are.
  void place_blocks(const Staged& staged, const format::Runs& runs, const format::FileCell& old,
                    const format::Runs& other, format::FileCell& cell);
  Result<Page*> get_page(std::uint64_t number);
  static format::ExtentPage& page_to_change(Page& page);
  static Strips& strips_to_change(Page& page);
  static format::CopyPage& copies_to_change(Page& page);
  // Removes the record and the copy. Frees their blocks, but not those of a piece that `kept` has, too. A member of a
  // group leaves it, and its blocks stay the group's, unless its bytes only move. Returns what they said.
  Result<StoredExtent> free_record(Page& page, const geometry::PagePlace& place, const StoredExtent& kept = {},
                                   bool is_moved = false);
  // False: the group is gone, or could not hold what the member was.
  bool leave_group(Page& page, unsigned place);
  void free_group(Page& page, unsigned place);
  // Those that have one of the places, a bit each.
  void free_groups(Page& page, std::uint64_t places);
  // The parity has just been written.
  Status put_group(std::uint64_t number, Page& page, format::ParityGroup group);
  void add_member(const Page& page, unsigned place);
  // Sets the record, and the copy, of a staged extent that replaces `old`.
  void put_record(Page& page, const geometry::PagePlace& place, const Staged& staged, const StoredExtent& old);
  // Both copies of a part of a strip.
  void remove_part(const format::Strip& strip, unsigned place);
  // Of the extents at these places, one bit each.
  void free_parts(Page& page, std::uint64_t places);
  // These parts of a strip no longer count.
  void drop_parts(Page& page, const Strips::Entry& entry, std::uint64_t places);
  Status shorten_parts(Page& page, unsigned place, std::uint32_t bytes);
  void put_page(std::uint64_t number, Page& page);
  void note_home(const Staged& staged, const StoredExtent& old);
  // `other_disks`: those with the other pieces, a bit each; 0: there are none.
  void add(const store::Run& run, std::uint64_t other_disks);
  void remove(const store::Run& run);

  Core& core_;
  const OpenObject& object_;
  store::Transaction& transaction_;
  std::int64_t change_blocks_ = 0;
  Pages pages_;
  std::vector<Home> homes_;
};

// Called after the transaction has succeeded, and before the cache can evict extents that depend on it.
void update_cached_pages(Core& core, const OpenObject& object, const Publisher::Pages& pages);

}  // namespace mdfs::engine
