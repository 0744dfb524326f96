// What a tree has beyond the end of a content, which nothing of ours puts there, goes before the content grows over it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/checked.h"
#include "engine/write/replacer.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

Result<bool> Replacer::has_beyond(Content& content, std::uint64_t size_bytes) {
  const std::uint64_t row_bytes = content.grid_row_bytes();
  const std::uint64_t first_row = ceil_div(size_bytes, row_bytes);
  if (!content.is_image()) {
    MDFS_TRY_ASSIGN(const auto cells, items_between(content, first_row, UINT64_MAX, 1));
    if (!cells.empty()) return true;
    if (size_bytes % row_bytes == 0) return false;
    MDFS_TRY_ASSIGN(const format::FileCell cell, core_.records.cell(content, size_bytes / row_bytes));
    return !cell.empty() && cell.runs.back().end() > ceil_div(size_bytes % row_bytes, content.block_size);
  }
  const std::uint64_t side = content.page_box.side[0];
  const std::uint64_t pages = content.pages_in_row();
  MDFS_TRY_ASSIGN(const auto beyond, items_between(content, ceil_div(first_row, side) * pages, UINT64_MAX, 1));
  if (!beyond.empty()) return true;
  if (first_row % side == 0) return false;
  const std::uint64_t edge = first_row / side;
  MDFS_TRY_ASSIGN(const auto items, items_between(content, edge * pages, (edge + 1) * pages - 1, SIZE_MAX));
  for (const std::uint64_t number : items) {
    MDFS_TRY_ASSIGN(const KnownPage known, core_.records.page(content, number, false));
    for (unsigned place = 0; place < content.page_box.places; ++place) {
      if (content.unit_of({number, place})[0] < first_row) continue;
      const bool in_strip = std::any_of(known.strips->begin(), known.strips->end(),
                                        [&](const Strips::Entry& entry) { return entry.has(place); });
      if (in_strip || known.page->has(place)) return true;
    }
  }
  return false;
}

Status Replacer::clear_beyond_end(Content& content) {
  if (content.end_is_clean.load(std::memory_order_acquire)) return {};
  const std::uint64_t row_bytes = content.grid_row_bytes();
  const std::uint64_t row = content.size.load(std::memory_order_acquire) / row_bytes;
  GridBox rows;
  rows.last.fill(UINT64_MAX);
  rows.first[0] = row;
  const GridLock::Hold hold(content.writers, content.rank, rows, GridLock::Mode::kExclusive);
  if (content.end_is_clean.load(std::memory_order_acquire)) return {};
  const ClosedGate closed(content.gate);
  const std::lock_guard linking(content.linking);
  const std::uint64_t size = content.size.load(std::memory_order_acquire);
  const std::uint64_t first_row = ceil_div(size, row_bytes);
  bool in_tree = false;
  {
    const std::lock_guard lock(content.state_mutex);
    in_tree = content.linked_inline;
  }
  MDFS_TRY_ASSIGN(const bool any, has_beyond(content, size));
  if (any) {
    Linker::Pages pages;
    const Status freed = core_.store.transact(store::Purpose::kFreeing, [&](store::Transaction& transaction) -> Status {
      Linker linker(core_, content, transaction);
      MDFS_TRY(free_rows(content, linker, first_row, UINT64_MAX));
      const std::uint64_t end = align_up(size % row_bytes, content.block_size);
      if (!content.is_image() && end > 0 && end < row_bytes)
        MDFS_TRY(linker.punch_cell(size / row_bytes, block_mask(content, end, row_bytes)));
      pages = linker.pages();
      std::uint64_t linked = 0;
      {
        const std::lock_guard lock(content.state_mutex);
        linked = content.linked_size;
      }
      return content.update(transaction, {linked, linker.stored_bytes_change(), in_tree});
    });
    if (!freed.ok()) return freed;
    publish_pages(core_, content, pages);
    reset_units(content, first_row * content.units_in_row(), UINT64_MAX, true);
    if (!content.is_image())
      zero_blocks(content, ceil_div(size, content.block_size), first_row * row_bytes / content.block_size);
  }
  content.end_is_clean.store(true, std::memory_order_release);
  return {};
}

}  // namespace mdfs::engine
