// Frees records beyond the end of an object, which this version never writes, before the object grows over them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/checked.h"
#include "engine/map/stored_items.h"
#include "engine/write/replacer.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

Result<bool> Replacer::has_beyond(OpenObject& object, std::uint64_t size_bytes) {
  const std::uint64_t row_bytes = object.grid_row_bytes();
  const std::uint64_t first_row = ceil_div(size_bytes, row_bytes);
  if (!object.is_image()) {
    MDFS_TRY_ASSIGN(const auto cells, stored_items(core_, object, first_row, UINT64_MAX, 1));
    if (!cells.empty()) return true;
    if (size_bytes % row_bytes == 0) return false;
    MDFS_TRY_ASSIGN(const format::FileCell cell, core_.extent_map.cell(object, size_bytes / row_bytes));
    return !cell.empty() && cell.runs.back().end() > ceil_div(size_bytes % row_bytes, object.block_size);
  }
  const std::uint64_t side = object.page_box.side[0];
  const std::uint64_t pages = object.pages_in_row();
  MDFS_TRY_ASSIGN(const auto beyond, stored_items(core_, object, ceil_div(first_row, side) * pages, UINT64_MAX, 1));
  if (!beyond.empty()) return true;
  if (first_row % side == 0) return false;
  const std::uint64_t edge = first_row / side;
  MDFS_TRY_ASSIGN(const auto items, stored_items(core_, object, edge * pages, (edge + 1) * pages - 1, SIZE_MAX));
  for (const std::uint64_t number : items) {
    MDFS_TRY_ASSIGN(const KnownPage known, core_.extent_map.page(object, number, false));
    for (unsigned place = 0; place < object.page_box.places; ++place) {
      if (object.extent_of({number, place})[0] < first_row) continue;
      const bool in_strip = std::any_of(known.strips->begin(), known.strips->end(),
                                        [&](const Strips::Entry& entry) { return entry.has(place); });
      if (in_strip || known.page->has(place)) return true;
    }
  }
  return false;
}

Status Replacer::clear_beyond_end(OpenObject& object) {
  if (object.end_is_clean.load(std::memory_order_acquire)) return {};
  const std::uint64_t row_bytes = object.grid_row_bytes();
  const std::uint64_t row = object.size.load(std::memory_order_acquire) / row_bytes;
  GridBox rows;
  rows.last.fill(UINT64_MAX);
  rows.first[0] = row;
  const RangeLock::Hold hold(object.range_lock, object.rank, rows, RangeLock::Mode::kExclusive);
  if (object.end_is_clean.load(std::memory_order_acquire)) return {};
  const ClosedBarrier closed(object.barrier);
  const std::lock_guard publishing(object.publishing);
  const std::uint64_t size = object.size.load(std::memory_order_acquire);
  const std::uint64_t first_row = ceil_div(size, row_bytes);
  bool in_tree = false;
  {
    const std::lock_guard lock(object.state_mutex);
    in_tree = object.published_inline;
  }
  MDFS_TRY_ASSIGN(const bool any, has_beyond(object, size));
  if (any) {
    Publisher::Pages pages;
    const Status freed = core_.store.transact(store::Purpose::kFreeing, [&](store::Transaction& transaction) -> Status {
      Publisher publisher(core_, object, transaction);
      MDFS_TRY(free_rows(object, publisher, first_row, UINT64_MAX));
      const std::uint64_t end = align_up(size % row_bytes, object.block_size);
      if (!object.is_image() && end > 0 && end < row_bytes)
        MDFS_TRY(publisher.punch_cell(size / row_bytes, block_mask(object, end, row_bytes)));
      pages = publisher.pages();
      std::uint64_t published = 0;
      {
        const std::lock_guard lock(object.state_mutex);
        published = object.published_size;
      }
      return object.update(transaction, {published, publisher.stored_bytes_change(), in_tree});
    });
    if (!freed.ok()) return freed;
    update_cached_pages(core_, object, pages);
    reset_blocks(object, first_row * object.extents_in_row(), UINT64_MAX, true);
    if (!object.is_image())
      zero_blocks(object, ceil_div(size, object.block_size), first_row * row_bytes / object.block_size);
  }
  object.end_is_clean.store(true, std::memory_order_release);
  return {};
}

}  // namespace mdfs::engine
