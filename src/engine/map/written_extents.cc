// Looking for written extents: first among dirty cache blocks, then in strips, then among records. An extent on its way
// from one to the next is seen twice rather than not at all.
// SPDX-License-Identifier: Apache-2.0
#include "engine/map/written_extents.h"

#include <algorithm>

#include "base/checked.h"
#include "engine/map/pages_under.h"
#include "engine/map/stored_items.h"
#include "format/strip.h"
#include "geometry/decompose.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {
namespace {

bool holds(const KnownPage& known, unsigned place) {
  return known.page->has(place) || std::any_of(known.strips->begin(), known.strips->end(),
                                               [&](const Strips::Entry& strip) { return strip.has(place); });
}

}  // namespace

Result<bool> WrittenExtents::contains(const geometry::Coord& extent) const {
  {
    const std::lock_guard lock(object_.state_mutex);
    if (object_.dirty_cache_blocks.contains(object_.extent_index(extent))) return true;
  }
  const geometry::PagePlace place = object_.page_of(extent);
  MDFS_TRY_ASSIGN(const KnownPage known, core_.extent_map.page(object_, place.page, false));
  return holds(known, place.place);
}

Result<std::vector<std::uint64_t>> WrittenExtents::in_row(const geometry::Coord& from, std::size_t most,
                                                          const Stop& stop) const {
  Found found;
  const unsigned fastest = object_.rank - 1;
  if (most == 0 || from[fastest] >= end_of_row(from)[fastest]) return std::vector<std::uint64_t>{};
  // The first ones of all are among the first ones of each.
  add_dirty(from, most, found);
  MDFS_TRY(add_strips(from, most, stop, found));
  MDFS_TRY(add_stored(from, most, stop, found));
  std::vector<std::uint64_t> first(found.begin(), found.end());
  if (first.size() > most) first.resize(most);
  return first;
}

Status WrittenExtents::each_in(const GridBox& asked, const Stop& stop, const Visit& visit) const {
  const geometry::Coord grid = object_.shape_for(object_.size.load(std::memory_order_acquire)).grid();
  GridBox box = asked;
  std::uint64_t count = 1;
  for (unsigned axis = 0; axis < object_.rank; ++axis) {
    box.last[axis] = std::min(box.last[axis], grid[axis]);
    if (box.first[axis] >= box.last[axis]) return {};
    count = checked_mul(count, box.last[axis] - box.first[axis]).value_or(UINT64_MAX);
  }
  if (count <= kFewInBox) {
    geometry::Coord extent = box.first;
    do {
      MDFS_TRY_ASSIGN(const bool written, contains(extent));
      if (!written) continue;
      MDFS_TRY_ASSIGN(const bool more, visit(extent));
      if (!more) return {};
    } while (geometry::step_in(object_.rank, box.first, box.last, extent));
    return {};
  }
  MDFS_TRY_ASSIGN(const bool continues, visit_dirty(box, visit));
  return continues ? each_stored_in(box, stop, visit) : Status{};
}

Status WrittenExtents::each_stored_in(const GridBox& box, const Stop& stop, const Visit& visit) const {
  const PagesUnder pages(object_, box);
  const std::uint64_t last = pages.last();
  for (std::uint64_t next = pages.first(); next <= last;) {
    MDFS_TRY(stopped(stop));
    MDFS_TRY_ASSIGN(const std::vector<std::uint64_t> stored, stored_items(core_, object_, next, last, kItemsAtOnce));
    if (stored.empty()) return {};
    for (const std::uint64_t page : stored) {
      const std::uint64_t in_box = pages.at_or_after(page);
      next = in_box == page ? page + 1 : in_box;
      if (in_box != page) break;
      MDFS_TRY_ASSIGN(const KnownPage known, core_.extent_map.page(object_, page, false));
      for (unsigned place = 0; place < object_.page_box.places; ++place) {
        const geometry::Coord extent = object_.extent_of({page, place});
        if (!holds(known, place) || !box.contains(object_.rank, extent)) continue;
        MDFS_TRY_ASSIGN(const bool more, visit(extent));
        if (!more) return {};
      }
    }
  }
  return {};
}

Result<bool> WrittenExtents::visit_dirty(const GridBox& box, const Visit& visit) const {
  std::vector<geometry::Coord> dirty;
  {
    const std::lock_guard lock(object_.state_mutex);
    geometry::Coord last = box.last;
    for (unsigned axis = 0; axis < object_.rank; ++axis) --last[axis];
    const auto end = object_.dirty_cache_blocks.upper_bound(object_.extent_index(last));
    for (auto block = object_.dirty_cache_blocks.lower_bound(object_.extent_index(box.first)); block != end; ++block)
      if (const geometry::Coord extent = object_.extent_coord(block->first); box.contains(object_.rank, extent))
        dirty.push_back(extent);
  }
  for (const geometry::Coord& extent : dirty) {
    MDFS_TRY_ASSIGN(const bool more, visit(extent));
    if (!more) return false;
  }
  return true;
}

Result<std::uint64_t> WrittenExtents::count_stored(const Stop& stop) const {
  std::uint64_t count = 0;
  for (format::Key next = page_key(object_, 0);;) {
    MDFS_TRY(stopped(stop));
    MDFS_TRY_ASSIGN(const auto items, core_.store.scan(next, page_key(object_, UINT64_MAX), kItemsAtOnce));
    for (const store::Item& item : items) {
      MDFS_TRY_ASSIGN(const format::ExtentPage page, format::ExtentPage::decode(item.value, object_.table));
      count += page.count();
    }
    if (items.size() < kItemsAtOnce || items.back().key.offset == UINT64_MAX) return count;
    next.offset = items.back().key.offset + 1;
  }
}

geometry::Coord WrittenExtents::end_of_row(const geometry::Coord& from) const {
  geometry::Coord end = from;
  const unsigned fastest = object_.rank - 1;
  end[fastest] = object_.shape_for(object_.size.load(std::memory_order_acquire)).grid()[fastest];
  return end;
}

void WrittenExtents::add_place(const geometry::Coord& from, const geometry::PagePlace& place, Found& found) const {
  const unsigned fastest = object_.rank - 1;
  const geometry::Coord extent = object_.extent_of(place);
  if (extent[fastest] < from[fastest] || extent[fastest] >= end_of_row(from)[fastest]) return;
  if (std::equal(from.begin(), from.begin() + fastest, extent.begin())) found.insert(extent[fastest]);
}

void WrittenExtents::add_dirty(const geometry::Coord& from, std::size_t most, Found& found) const {
  const std::uint64_t last = object_.extent_index(end_of_row(from));
  const std::lock_guard lock(object_.state_mutex);
  for (auto block = object_.dirty_cache_blocks.lower_bound(object_.extent_index(from));
       block != object_.dirty_cache_blocks.end() && block->first < last && found.size() < most; ++block)
    found.insert(object_.extent_coord(block->first)[object_.rank - 1]);
}

Status WrittenExtents::add_strips(const geometry::Coord& from, std::size_t most, const Stop& stop, Found& found) const {
  if (!object_.may_have_strips) return {};
  Found in_strips;
  geometry::Coord end = end_of_row(from);
  --end[object_.rank - 1];
  const format::Key last = strip_key(object_, object_.page_of(end).page, MDFS_STRIPS_PER_PAGE - 1);
  std::uint64_t page = object_.page_of(from).page;
  for (format::Key next = strip_key(object_, page, 0); next.offset <= last.offset;) {
    MDFS_TRY(stopped(stop));
    MDFS_TRY_ASSIGN(const auto items, core_.store.scan(next, last, kItemsAtOnce));
    for (const store::Item& item : items) {
      // A page may have several strips, so that its extents are known when the next page begins.
      const std::uint64_t here = item.key.offset / MDFS_STRIPS_PER_PAGE;
      if (here != page && in_strips.size() >= most) break;
      page = here;
      MDFS_TRY_ASSIGN(const format::Strip strip, format::decode_strip(item.value, object_.table, object_.block_size));
      for (unsigned place = 0; place < object_.page_box.places; ++place)
        if (strip.has(place)) add_place(from, {page, place}, in_strips);
      next.offset = item.key.offset + 1;
    }
    if (items.size() < kItemsAtOnce || next.offset <= items.back().key.offset) break;
  }
  found.merge(in_strips);
  return {};
}

Status WrittenExtents::add_stored(const geometry::Coord& from, std::size_t most, const Stop& stop, Found& found) const {
  Found stored;
  geometry::Coord end = end_of_row(from);
  --end[object_.rank - 1];
  const format::Key last = page_key(object_, object_.page_of(end).page);
  for (format::Key next = page_key(object_, object_.page_of(from).page); stored.size() < most;) {
    MDFS_TRY(stopped(stop));
    MDFS_TRY_ASSIGN(const auto items, core_.store.scan(next, last, kItemsAtOnce));
    for (const store::Item& item : items) {
      if (stored.size() >= most) break;
      MDFS_TRY_ASSIGN(const format::ExtentPage page, format::ExtentPage::decode(item.value, object_.table));
      for (unsigned place = 0; place < object_.page_box.places; ++place)
        if (page.has(place)) add_place(from, {item.key.offset, place}, stored);
    }
    if (items.size() < kItemsAtOnce || items.back().key.offset >= last.offset) break;
    next.offset = items.back().key.offset + 1;
  }
  found.merge(stored);
  return {};
}

}  // namespace mdfs::engine
