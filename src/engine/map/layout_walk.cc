// Walks the rows of a layout.
// SPDX-License-Identifier: Apache-2.0
#include "engine/map/layout_walk.h"

#include <algorithm>

#include "base/checked.h"
#include "engine/requests.h"
#include "format/file_cell.h"
#include "format/parity_group.h"
#include "format/strip.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {
namespace {

constexpr std::uint64_t kNone = UINT64_MAX;

}  // namespace

layout::ExtentPlace row_of(const geometry::Coord& extent, const format::Runs& runs, std::uint64_t stored_bytes) {
  layout::ExtentPlace row{extent, runs.front().disk, runs.front().block, stored_bytes};
  row.pieces = static_cast<std::uint32_t>(runs.size());
  for (const store::Run& run : runs) row.end = std::max(row.end, run.end());
  return row;
}

Status each_copy(Core& core, const OpenObject& object, std::uint64_t page, ConstBytes value, LayoutCursor& at,
                 const TakeRow& take, bool& taking) {
  MDFS_TRY_ASSIGN(const auto copies, core.extent_map.copies_of(core.store, object, page));
  if (copies == nullptr) return {};
  MDFS_TRY_ASSIGN(const format::ExtentPage records, format::ExtentPage::decode(value, object.table));
  for (; at.row < kFirstLeaverRow; ++at.row) {
    const unsigned place = at.row - kFirstCopyRow;
    if (const format::ParityGroup* const group = copies->group_of(place)) {
      if (group->lowest() != place) continue;
      const StoredExtent parity = group->parity.stored(object.table, object.block_size);
      layout::ExtentPlace row = row_of(object.extent_of({page, place}), parity.runs, parity.stored_bytes);
      row.is_copy = row.is_parity = true;
      taking = take(row);
      if (!taking) return {};
      continue;
    }
    if (!copies->get(place)) continue;
    MDFS_TRY_ASSIGN(
        const std::optional<StoredExtent> extent,
        format::read_pieces(core.store, page_key(object, page), records, copies.get(), place, object.block_size));
    if (!extent || !extent->has_copy()) continue;
    layout::ExtentPlace row = row_of(object.extent_of({page, place}), extent->copy, extent->stored_bytes);
    row.is_copy = true;
    taking = take(row);
    if (!taking) return {};
  }
  for (; at.row < kFirstStripCopyRow; ++at.row) {
    const unsigned place = (at.row - kFirstLeaverRow) / format::kMostGroupPieces;
    const std::size_t number = (at.row - kFirstLeaverRow) % format::kMostGroupPieces;
    const format::ParityGroup* const group = copies->group_of(place);
    if (group == nullptr || group->lowest() != place || number >= group->leavers.size()) continue;
    const StoredExtent leaver = group->leavers[number].stored(object.table, object.block_size);
    layout::ExtentPlace row = row_of(object.extent_of({page, place}), leaver.runs, leaver.stored_bytes);
    row.is_copy = row.is_leaver = true;
    taking = take(row);
    if (!taking) return {};
  }
  return {};
}

Status each_extent(Core& core, const OpenObject& object, std::uint64_t page, ConstBytes value, LayoutCursor& at,
                   const TakeRow& take, bool& taking) {
  MDFS_TRY_ASSIGN(const format::ExtentPage records, format::ExtentPage::decode(value, object.table));
  for (; at.row < object.page_box.places; ++at.row) {
    MDFS_TRY_ASSIGN(const std::optional<StoredExtent> extent,
                    format::read_extent(core.store, page_key(object, page), records, at.row, object.block_size));
    if (!extent || !extent->is_stored()) continue;  // a hole, or moved meanwhile
    taking = take(row_of(object.extent_of({page, at.row}), extent->runs, extent->stored_bytes));
    if (!taking) return {};
  }
  return {};
}

Result<bool> LayoutWalk::run(LayoutCursor& at, const TakeRow& take) {
  return object_.is_image() ? run_pages(at, take) : run_cells(at, take);
}

Status LayoutWalk::fetch(const format::Key& from) {
  MDFS_TRY(stopped(stop_));
  MDFS_TRY_ASSIGN(items_, core_.store.scan(from, {from.object, from.kind, UINT64_MAX}, kItemsAtOnce));
  used_ = 0;
  fetched_all_ = items_.size() < kItemsAtOnce;
  return {};
}

// The rows from `first_row` on. False: `take` wants no more.
bool LayoutWalk::runs_of_cell(const format::FileCell& cell, std::uint32_t first_row, LayoutCursor& at,
                              const TakeRow& take) const {
  for (; at.row - first_row < cell.runs.size(); ++at.row) {
    const store::Run run = cell.runs[at.row - first_row].place();
    layout::ExtentPlace row = row_of({at.page, 0, 0}, {run}, std::uint64_t{run.blocks} * object_.block_size);
    row.is_copy = first_row != 0;
    if (!take(row)) return false;
  }
  return true;
}

Result<bool> LayoutWalk::run_cells(LayoutCursor& at, const TakeRow& take) {
  if (of_ == LayoutOf::kStrips) return true;
  for (;;) {
    MDFS_TRY(fetch({object_.number, MDFS_KIND_FILE_CELL, at.page}));
    for (const store::Item& item : items_) {
      if (item.key.offset != at.page) at = {item.key.offset, 0};
      if (at.row < kFirstCopyRow) {
        MDFS_TRY_ASSIGN(const format::FileCell cell, format::decode_file_cell(item.value, object_.block_size));
        if (!runs_of_cell(cell, 0, at, take)) return false;
      }
      if (of_ == LayoutOf::kPieces && core_.extent_map.has_copies()) {
        at.row = std::max(at.row, kFirstCopyRow);
        MDFS_TRY_ASSIGN(const format::CellPieces pieces, core_.extent_map.cell_pieces(object_, item));
        if (!runs_of_cell(pieces.copy, kFirstCopyRow, at, take)) return false;
      }
      if (at.page == UINT64_MAX) return true;
      at = {at.page + 1, 0};
    }
    if (fetched_all_) return true;
  }
}

Result<std::uint64_t> LayoutWalk::next_of_extents(const LayoutCursor& at) {
  if (of_ == LayoutOf::kStrips) return kNone;
  const bool is_here = at.row < format::kMaxPlaces || (of_ == LayoutOf::kPieces && at.row < kFirstStripCopyRow);
  const std::uint64_t from = is_here ? at.page : at.page + 1;
  if (from == 0 && at.page != 0) return kNone;
  while (used_ < items_.size() && items_[used_].key.offset < from) ++used_;
  if (used_ == items_.size() && !fetched_all_) MDFS_TRY(fetch({object_.number, MDFS_KIND_EXTENTS, from}));
  return used_ < items_.size() ? items_[used_].key.offset : kNone;
}

Result<std::uint64_t> LayoutWalk::next_of_strips(const LayoutCursor& at) {
  if (of_ == LayoutOf::kExtents || !object_.may_have_strips) return kNone;
  if (strip_page_ && *strip_page_ >= at.page) return *strip_page_;
  if (at.page > kNone / MDFS_STRIPS_PER_PAGE) return kNone;
  MDFS_TRY(stopped(stop_));
  const bool looks_again = of_ == LayoutOf::kPieces && at.row >= kFirstCopyRow;
  const std::uint32_t begin = looks_again ? kFirstStripCopyRow : format::kMaxPlaces;
  const std::uint64_t strip = at.row < begin ? 0 : (at.row - begin) / format::kMaxPlaces;
  const format::Key from{object_.number, MDFS_KIND_STRIP, at.page * MDFS_STRIPS_PER_PAGE + strip};
  MDFS_TRY_ASSIGN(const auto items, core_.store.scan(from, {object_.number, MDFS_KIND_STRIP, UINT64_MAX}, 1));
  strip_page_ = items.empty() ? kNone : items.front().key.offset / MDFS_STRIPS_PER_PAGE;
  return *strip_page_;
}

// The rows of the parts, or of their copies.
Status LayoutWalk::strips_of_page(bool copies, LayoutCursor& at, const TakeRow& take, bool& taking) {
  const std::uint32_t begin = copies ? kFirstStripCopyRow : format::kMaxPlaces;
  const std::uint64_t first = at.page * MDFS_STRIPS_PER_PAGE;
  const std::uint64_t last = first + MDFS_STRIPS_PER_PAGE - 1;
  for (std::uint64_t next = first + (at.row - begin) / format::kMaxPlaces; next <= last && next >= first;) {
    MDFS_TRY(stopped(stop_));
    MDFS_TRY_ASSIGN(const auto items, core_.store.scan({object_.number, MDFS_KIND_STRIP, next},
                                                       {object_.number, MDFS_KIND_STRIP, last}, kItemsAtOnce));
    for (const store::Item& item : items) {
      const auto strip_rows = static_cast<std::uint32_t>(begin + (item.key.offset - first) * format::kMaxPlaces);
      at.row = std::max(at.row, strip_rows);
      MDFS_TRY_ASSIGN(const format::Strip strip, format::decode_strip(item.value, object_.table, object_.block_size));
      for (; at.row - strip_rows < object_.page_box.places; ++at.row) {
        const unsigned place = at.row - strip_rows;
        if (!strip.has(place) || (copies && !strip.copy)) continue;
        const store::Run run =
            copies ? *strip.copy_of_part(place, object_.block_size) : strip.part(place, object_.block_size);
        layout::ExtentPlace row = row_of(object_.extent_of({at.page, place}), {run}, strip.bytes);
        row.in_strip = true;
        row.is_copy = copies;
        taking = take(row);
        if (!taking) return {};
      }
      at.row = strip_rows + format::kMaxPlaces;
    }
    if (items.size() < kItemsAtOnce) return {};
    next = items.back().key.offset + 1;
  }
  return {};
}

Result<bool> LayoutWalk::run_pages(LayoutCursor& at, const TakeRow& take) {
  bool taking = true;
  for (;;) {
    MDFS_TRY_ASSIGN(const std::uint64_t of_extents, next_of_extents(at));
    MDFS_TRY_ASSIGN(const std::uint64_t of_strips, next_of_strips(at));
    const std::uint64_t page = std::min(of_extents, of_strips);
    if (page == kNone) return true;
    if (page != at.page) at = {page, 0};
    if (at.row < format::kMaxPlaces && of_extents == page)
      MDFS_TRY(each_extent(core_, object_, page, items_[used_].value, at, take, taking));
    if (!taking) return false;
    at.row = std::max(at.row, std::uint32_t{format::kMaxPlaces});
    if (of_strips == page && at.row < kFirstCopyRow) MDFS_TRY(strips_of_page(false, at, take, taking));
    if (!taking) return false;
    at.row = std::max(at.row, kFirstCopyRow);
    if (of_ == LayoutOf::kPieces && of_extents == page && at.row < kFirstStripCopyRow)
      MDFS_TRY(each_copy(core_, object_, page, items_[used_].value, at, take, taking));
    if (!taking) return false;
    at.row = std::max(at.row, kFirstStripCopyRow);
    if (of_ == LayoutOf::kPieces && of_strips == page) MDFS_TRY(strips_of_page(true, at, take, taking));
    if (!taking) return false;
    at = {page + 1, 0};
  }
}

}  // namespace mdfs::engine
