// Walks the rows of a layout.
// SPDX-License-Identifier: Apache-2.0
#include "engine/map/layout_walk.h"

#include <algorithm>

#include "base/checked.h"
#include "engine/requests.h"
#include "format/file_cell.h"
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
  for (; at.row < kMostRowsOfPage; ++at.row) {
    const unsigned place = at.row - kFirstCopyRow;
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

Result<bool> LayoutWalk::run_cells(LayoutCursor& at, const TakeRow& take) {
  if (of_ == LayoutOf::kStrips) return true;
  for (;;) {
    MDFS_TRY(fetch({object_.number, MDFS_KIND_FILE_CELL, at.page}));
    for (const store::Item& item : items_) {
      if (item.key.offset != at.page) at = {item.key.offset, 0};
      MDFS_TRY_ASSIGN(const format::FileCell cell, format::decode_file_cell(item.value, object_.block_size));
      for (; at.row < cell.runs.size(); ++at.row) {
        const store::Run run = cell.runs[at.row].place();
        if (!take(row_of({at.page, 0, 0}, {run}, std::uint64_t{run.blocks} * object_.block_size))) return false;
      }
      if (at.page == UINT64_MAX) return true;
      at = {at.page + 1, 0};
    }
    if (fetched_all_) return true;
  }
}

Result<std::uint64_t> LayoutWalk::next_of_extents(const LayoutCursor& at) {
  if (of_ == LayoutOf::kStrips) return kNone;
  const bool is_here = at.row < format::kMaxPlaces || (of_ == LayoutOf::kPieces && at.row < kMostRowsOfPage);
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
  const std::uint64_t strip = at.row / format::kMaxPlaces;  // one more than its number
  const format::Key from{object_.number, MDFS_KIND_STRIP,
                         at.page * MDFS_STRIPS_PER_PAGE + (strip == 0 ? 0 : strip - 1)};
  MDFS_TRY_ASSIGN(const auto items, core_.store.scan(from, {object_.number, MDFS_KIND_STRIP, UINT64_MAX}, 1));
  strip_page_ = items.empty() ? kNone : items.front().key.offset / MDFS_STRIPS_PER_PAGE;
  return *strip_page_;
}

Status LayoutWalk::strips_of_page(LayoutCursor& at, const TakeRow& take, bool& taking) {
  const std::uint64_t first = at.page * MDFS_STRIPS_PER_PAGE;
  const std::uint64_t last = first + MDFS_STRIPS_PER_PAGE - 1;
  for (std::uint64_t next = first + at.row / format::kMaxPlaces - 1; next <= last && next >= first;) {
    MDFS_TRY(stopped(stop_));
    MDFS_TRY_ASSIGN(const auto items, core_.store.scan({object_.number, MDFS_KIND_STRIP, next},
                                                       {object_.number, MDFS_KIND_STRIP, last}, kItemsAtOnce));
    for (const store::Item& item : items) {
      const auto strip_rows = static_cast<std::uint32_t>((item.key.offset - first + 1) * format::kMaxPlaces);
      at.row = std::max(at.row, strip_rows);
      MDFS_TRY_ASSIGN(const format::Strip strip, format::decode_strip(item.value, object_.table, object_.block_size));
      for (; at.row - strip_rows < object_.page_box.places; ++at.row) {
        const unsigned place = at.row - strip_rows;
        if (!strip.has(place)) continue;
        layout::ExtentPlace row =
            row_of(object_.extent_of({at.page, place}), {strip.part(place, object_.block_size)}, strip.bytes);
        row.in_strip = true;
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
    if (of_strips == page && at.row < kFirstCopyRow) MDFS_TRY(strips_of_page(at, take, taking));
    if (!taking) return false;
    at.row = std::max(at.row, kFirstCopyRow);
    if (of_ == LayoutOf::kPieces && of_extents == page)
      MDFS_TRY(each_copy(core_, object_, page, items_[used_].value, at, take, taking));
    if (!taking) return false;
    at = {page + 1, 0};
  }
}

}  // namespace mdfs::engine
