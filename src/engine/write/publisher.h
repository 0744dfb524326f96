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

// A strip that has been written, and what of the page it belongs to.
struct StagedStrip {
  std::uint64_t page = 0;
  format::Strip strip;
};

// The changes of one transaction to the records of one object. Made and used inside store.transact(), once in each, by
// the holder of `publishing`, so that pages that are kept in memory are as the tree has them; after it has succeeded
// update_cached_pages() brings those up to date.
class Publisher {
 public:
  Publisher(Core& core, const OpenObject& object, store::Transaction& transaction)
      : core_(core), object_(object), transaction_(transaction) {}

  // The extents' records are replaced (an extent without runs becomes a hole); parts of them in strips go.
  Status publish(const std::vector<Staged>& extents);
  // Adds strips. Nothing that they hold lies in another strip; kBusy where a page has no number left.
  Status publish_strips(const std::vector<StagedStrip>& strips);
  // All records with keys in [first, last] of an item kind go: pages of extents with their strips, or cells.
  Status free_items(std::uint64_t first, std::uint64_t last);
  // The records of one page whose extents lie in the box (half-open) go.
  Status free_in_page(std::uint64_t page, const GridBox& box);
  // Blocks of a cell become holes.
  Status punch_cell(std::uint64_t cell, std::uint32_t blocks);

  // Bytes of blocks published less those freed.
  std::int64_t stored_bytes_change() const { return change_blocks_ * static_cast<std::int64_t>(object_.block_size); }
  // Pages as they are now; nulls: gone.
  struct Page {
    std::shared_ptr<const format::ExtentPage> page;
    std::shared_ptr<const Strips> strips;
    // The same, once they have been changed: others may hold them as they were.
    std::shared_ptr<format::ExtentPage> own_page;
    std::shared_ptr<Strips> own_strips;
    std::set<unsigned> changed;  // numbers of strips
  };
  using Pages = std::map<std::uint64_t, Page>;
  const Pages& pages() const { return pages_; }
  // Extents that were replaced, contiguous on the disk that their placement names, and where they were.
  const std::vector<Home>& left() const { return left_; }

 private:
  Status publish_image(const std::vector<Staged>& extents);
  Status free_strips(std::uint64_t first_page, std::uint64_t last_page);
  Status publish_cells(const std::vector<Staged>& extents);
  Result<format::FileCell> get_cell(std::uint64_t cell);
  void put_cell(std::uint64_t cell, const format::FileCell& value);
  Result<Page*> get_page(std::uint64_t number);
  static format::ExtentPage& page_to_change(Page& page);
  static Strips& strips_to_change(Page& page);
  // Returns the runs that it had.
  Result<std::vector<store::Run>> free_record(Page& page, const geometry::PagePlace& place);
  // Of the extents at these places, a bit each.
  void free_parts(Page& page, std::uint64_t places);
  void put_page(std::uint64_t number, Page& page);
  void note_left(const Staged& staged, const std::vector<store::Run>& runs);
  void add(const store::Run& run);
  void remove(const store::Run& run);

  Core& core_;
  const OpenObject& object_;
  store::Transaction& transaction_;
  std::int64_t change_blocks_ = 0;
  Pages pages_;
  std::vector<Home> left_;
};

// After the transaction has succeeded, and before extents that depend on it can leave the cache.
void update_cached_pages(Core& core, const OpenObject& object, const Publisher::Pages& pages);

}  // namespace mdfs::engine
