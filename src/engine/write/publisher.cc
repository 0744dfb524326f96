// Publishing: records of extents and cells inside a transaction.
// SPDX-License-Identifier: Apache-2.0
#include "engine/write/publisher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

void Publisher::add(const store::Run& run) {
  transaction_.publish(run);
  change_blocks_ += run.blocks;
}

void Publisher::remove(const store::Run& run) {
  transaction_.free(run);
  change_blocks_ -= run.blocks;
}

Status Publisher::publish(const std::vector<Staged>& extents) {
  return object_.is_image() ? publish_image(extents) : publish_cells(extents);
}

// ---- images

Result<Publisher::Page*> Publisher::get_page(std::uint64_t number) {
  const auto [found, is_new] = pages_.try_emplace(number);
  Page& state = found->second;
  if (state.page != nullptr) return &state;
  if (is_new) {
    const KnownPage kept = core_.extent_map.kept_page(object_, number);
    if (kept.page != nullptr) {
      state.page = kept.page;
      state.strips = kept.strips;
      state.copies = kept.copies;
      return &state;
    }
  }
  MDFS_TRY_ASSIGN(const auto value, transaction_.get(page_key(object_, number)));
  auto page = std::make_shared<format::ExtentPage>(object_.table);
  if (value) {
    MDFS_TRY_ASSIGN(*page, format::ExtentPage::decode(*value, object_.table));
  }
  Strips strips;
  if (object_.may_have_strips) {
    MDFS_TRY_ASSIGN(const auto items,
                    transaction_.scan(strip_key(object_, number, 0),
                                      strip_key(object_, number, MDFS_STRIPS_PER_PAGE - 1), SIZE_MAX));
    MDFS_TRY_ASSIGN(strips, strips_of(object_, items));
  }
  MDFS_TRY_ASSIGN(state.copies, core_.extent_map.copies_of(transaction_, object_, number));
  state.page = std::move(page);
  state.strips = std::make_shared<const Strips>(std::move(strips));
  return &state;
}

format::ExtentPage& Publisher::page_to_change(Page& page) {
  if (page.own_page == nullptr) {
    page.own_page = std::make_shared<format::ExtentPage>(*page.page);
    page.page = page.own_page;
  }
  return *page.own_page;
}

Strips& Publisher::strips_to_change(Page& page) {
  if (page.own_strips == nullptr) {
    page.own_strips = std::make_shared<Strips>(*page.strips);
    page.strips = page.own_strips;
  }
  return *page.own_strips;
}

format::CopyPage& Publisher::copies_to_change(Page& page) {
  if (page.own_copies == nullptr) {
    page.own_copies = page.copies == nullptr ? std::make_shared<format::CopyPage>()
                                             : std::make_shared<format::CopyPage>(*page.copies);
    page.copies = page.own_copies;
  }
  return *page.own_copies;
}

void Publisher::put_page(std::uint64_t number, Page& page) {
  if (page.own_page != nullptr && page.page->empty())
    transaction_.erase(page_key(object_, number));
  else if (page.own_page != nullptr)
    transaction_.put(page_key(object_, number), page.page->encode());
  if (page.own_copies != nullptr && page.own_copies->empty())
    transaction_.erase(copies_key(object_, number));
  else if (page.own_copies != nullptr)
    transaction_.put(copies_key(object_, number), page.own_copies->encode());
  for (const unsigned changed : std::exchange(page.changed, {})) {
    const format::Strip* const strip = page.strips->find(changed);
    if (strip == nullptr)
      transaction_.erase(strip_key(object_, number, changed));
    else
      transaction_.put(strip_key(object_, number, changed), format::encode(*strip));
  }
}

void Publisher::drop_parts(Page& page, const Strips::Entry& entry, std::uint64_t places) {
  format::Strip rest = *entry.strip;
  rest.live &= ~places;
  page.changed.insert(entry.number);
  if (rest.live == 0)
    strips_to_change(page).erase(entry.number);
  else
    strips_to_change(page).set(entry.number, std::move(rest));
}

void Publisher::free_parts(Page& page, std::uint64_t places) {
  std::vector<Strips::Entry> touched;
  for (const Strips::Entry& entry : *page.strips)
    if ((entry.live & places) != 0) touched.push_back(entry);
  for (const Strips::Entry& entry : touched) {
    const std::uint64_t freed = entry.live & places;
    for (unsigned place = 0; place < format::kMaxPlaces; ++place)
      if ((freed >> place & 1) != 0) remove(entry.strip->part(place, object_.block_size));
    drop_parts(page, entry, freed);
  }
}

Status Publisher::shorten_parts(const std::vector<ShortenedExtent>& extents) {
  std::set<std::uint64_t> pages;
  for (const ShortenedExtent& extent : extents) {
    const geometry::PagePlace place = object_.page_of(extent.coord);
    MDFS_TRY_ASSIGN(Page* const page, get_page(place.page));
    MDFS_TRY(shorten_parts(*page, place.place, extent.bytes));
    pages.insert(place.page);
  }
  for (const std::uint64_t number : pages) put_page(number, pages_[number]);
  return {};
}

// What stays of a part becomes a strip of its own, since all parts of a strip are equally long.
Status Publisher::shorten_parts(Page& page, unsigned place, std::uint32_t bytes) {
  if (page.page->has(place)) return {Errc::kBusy, "an extent to shorten has a record"};
  std::vector<Strips::Entry> touched;
  for (const Strips::Entry& entry : *page.strips)
    if (entry.has(place) && entry.end > bytes) touched.push_back(entry);
  for (const Strips::Entry& entry : touched) {
    store::Run freed = entry.strip->part(place, object_.block_size);
    if (entry.begin < bytes) {
      const unsigned number = page.strips->free_number();
      if (number >= MDFS_STRIPS_PER_PAGE) return {Errc::kBusy, "no number left for a strip"};
      format::Strip kept = entry.strip->shortened_part(place, bytes - entry.begin, object_.block_size);
      const unsigned blocks = kept.part_blocks(object_.block_size);
      freed.block += blocks;
      freed.blocks -= blocks;
      strips_to_change(page).set(number, std::move(kept));
      page.changed.insert(number);
    }
    if (freed.blocks > 0) remove(freed);
    drop_parts(page, entry, std::uint64_t{1} << place);
  }
  return {};
}

Status Publisher::publish_strips(const std::vector<StagedStrip>& strips) {
  std::set<std::uint64_t> pages;
  for (const StagedStrip& staged : strips) {
    MDFS_TRY_ASSIGN(Page* const page, get_page(staged.page));
    const unsigned number = page->strips->free_number();
    if (number >= MDFS_STRIPS_PER_PAGE) return {Errc::kBusy, "no number left for a strip"};
    format::Strip strip = staged.strip;
    strip.birth = strip.written = transaction_.generation();
    for (unsigned place = 0; place < format::kMaxPlaces; ++place)
      if (strip.has(place)) add(strip.part(place, object_.block_size));
    strips_to_change(*page).set(number, std::move(strip));
    page->changed.insert(number);
    pages.insert(staged.page);
  }
  for (const std::uint64_t number : pages) put_page(number, pages_[number]);
  return {};
}

Result<StoredExtent> Publisher::free_record(Page& page, const geometry::PagePlace& place, const StoredExtent& kept) {
  const format::Key key = page_key(object_, place.page);
  MDFS_TRY_ASSIGN(
      std::optional<StoredExtent> freed,
      format::read_pieces(transaction_, key, *page.page, page.copies.get(), place.place, object_.block_size));
  if (!freed) return runs_missing(object_);
  if (!freed->is_stored()) return std::move(*freed);
  for (const format::Runs* const piece : {&freed->runs, &freed->copy})
    if (!(*piece == kept.runs) && !(*piece == kept.copy))
      for (const store::Run& run : *piece) remove(run);
  if (freed->has_runs_item) transaction_.erase(format::extent_runs_key(key, place.place));
  page_to_change(page).erase(place.place);
  if (freed->has_copy()) {
    if (freed->copy_has_runs_item) transaction_.erase(format::copy_runs_key(key, place.place));
    copies_to_change(page).erase(place.place);
  }
  return std::move(*freed);
}

void Publisher::put_record(Page& page, const geometry::PagePlace& place, const Staged& staged,
                           const StoredExtent& old) {
  const format::Key key = page_key(object_, place.page);
  StoredExtent extent = staged.extent;
  // A piece that stays where it is keeps its birth.
  const auto birth_of = [&](const format::Runs& piece) {
    if (piece == old.runs) return old.birth;
    if (piece == old.copy) return old.copy_birth;
    for (const store::Run& run : piece) add(run);
    return transaction_.generation();
  };
  extent.birth = birth_of(extent.runs);
  extent.written = staged.is_moved && old.is_stored() ? old.written : extent.birth;
  const format::ExtentRecord record = format::ExtentRecord::of(extent);
  if (record.is_scattered())
    transaction_.put(format::extent_runs_key(key, place.place), format::encode_extent_runs(extent.runs));
  page_to_change(page).set(place.place, record);
  if (!extent.has_copy()) return;
  extent.copy_birth = birth_of(extent.copy);
  const format::ExtentCopy copy = format::ExtentCopy::of(extent);
  if (copy.is_scattered())
    transaction_.put(format::copy_runs_key(key, place.place), format::encode_extent_runs(extent.copy));
  copies_to_change(page).set(place.place, copy);
}

void Publisher::note_home(const Staged& staged, const StoredExtent& old) {
  if (!old.is_contiguous() || staged.is_moved || !staged.extent.is_stored()) return;
  if (old.first().disk != object_.placement_disk(staged.coord)) return;
  homes_.push_back({staged.index, object_.groups.order_of(staged.coord), old.first(), transaction_.generation()});
}

Status Publisher::publish_image(const std::vector<Staged>& extents) {
  std::map<std::uint64_t, std::vector<std::pair<unsigned, const Staged*>>> by_page;
  for (const Staged& staged : extents) {
    const geometry::PagePlace place = object_.page_of(staged.coord);
    by_page[place.page].emplace_back(place.place, &staged);
  }
  for (const auto& [number, list] : by_page) {
    MDFS_TRY_ASSIGN(Page* const state, get_page(number));
    std::uint64_t replaced = 0;
    for (const auto& [place, staged] : list)
      if (!staged->is_moved) replaced |= std::uint64_t{1} << place;
    free_parts(*state, replaced);
    for (const auto& [place, staged] : list) {
      MDFS_TRY_ASSIGN(const StoredExtent old, free_record(*state, {number, place}, staged->extent));
      note_home(*staged, old);
      if (staged->extent.is_stored()) put_record(*state, {number, place}, *staged, old);
    }
    put_page(number, *state);
  }
  return {};
}

Status Publisher::free_in_page(std::uint64_t number, const GridBox& box) {
  MDFS_TRY_ASSIGN(Page* const page, get_page(number));
  std::uint64_t freed = 0;
  for (unsigned place = 0; place < object_.page_box.places; ++place) {
    const geometry::Coord extent = object_.extent_of({number, place});
    if (!box.contains(object_.rank, extent)) continue;
    MDFS_TRY(free_record(*page, {number, place}));
    freed |= std::uint64_t{1} << place;
  }
  free_parts(*page, freed);
  put_page(number, *page);
  return {};
}

// ---- ordinary files

Result<format::FileCell> Publisher::get_cell(std::uint64_t cell) {
  MDFS_TRY_ASSIGN(const auto value, transaction_.get(cell_key(object_, cell)));
  if (!value) return format::FileCell{};
  return format::decode_file_cell(*value, object_.block_size);
}

void Publisher::put_cell(std::uint64_t cell, const format::FileCell& value) {
  if (value.empty())
    transaction_.erase(cell_key(object_, cell));
  else
    transaction_.put(cell_key(object_, cell), format::encode(value));
}

Status Publisher::publish_cells(const std::vector<Staged>& extents) {
  for (const Staged& staged : extents) {
    if (staged.blocks == 0 && staged.holes == 0) continue;
    MDFS_TRY_ASSIGN(format::FileCell cell, get_cell(staged.index));
    for (unsigned block = 0; block < 32; ++block)
      if ((staged.holes >> block & 1) != 0)
        for (const store::Run& freed : cell.punch(block, 1)) remove(freed);
    // Blocks take the places of the runs in order; what is contiguous in both becomes one run.
    std::size_t number = 0;
    std::size_t run = 0;
    std::uint32_t used = 0;
    for (unsigned block = 0; block < 32; ++block) {
      if ((staged.blocks >> block & 1) == 0) continue;
      const store::Run& from = staged.extent.runs[run];
      const std::optional<format::BlockPlace> old = cell.find(block);
      format::FileRun placed;
      placed.address = {from.disk, from.block + used};
      placed.birth = transaction_.generation();
      placed.written = staged.is_moved && old ? old->written : placed.birth;
      placed.first = static_cast<std::uint16_t>(block);
      placed.crc32c = {staged.extent.crc32c[number++]};
      for (const store::Run& freed : cell.replace(placed)) remove(freed);
      if (++used == from.blocks) {
        ++run;
        used = 0;
      }
    }
    for (const store::Run& taken : staged.extent.all_runs()) add(taken);
    put_cell(staged.index, cell);
  }
  return {};
}

Status Publisher::punch_cell(std::uint64_t number, std::uint32_t blocks) {
  MDFS_TRY_ASSIGN(format::FileCell cell, get_cell(number));
  for (unsigned block = 0; block < 32; ++block)
    if ((blocks >> block & 1) != 0)
      for (const store::Run& freed : cell.punch(block, 1)) remove(freed);
  put_cell(number, cell);
  return {};
}

Status Publisher::free_items(std::uint64_t first, std::uint64_t last) {
  const std::uint64_t kind = object_.is_image() ? MDFS_KIND_EXTENTS : MDFS_KIND_FILE_CELL;
  MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                  transaction_.scan({object_.number, kind, first}, {object_.number, kind, last}, SIZE_MAX));
  for (const store::Item& item : items) {
    if (object_.is_image()) {
      MDFS_TRY_ASSIGN(format::ExtentPage stored, format::ExtentPage::decode(item.value, object_.table));
      Page page;
      page.page = page.own_page = std::make_shared<format::ExtentPage>(std::move(stored));
      MDFS_TRY_ASSIGN(page.copies, core_.extent_map.copies_of(transaction_, object_, item.key.offset));
      if (page.copies != nullptr) transaction_.erase(copies_key(object_, item.key.offset));
      for (unsigned place = 0; place < object_.page_box.places; ++place)
        MDFS_TRY(free_record(page, {item.key.offset, place}));
      transaction_.erase(item.key);
      pages_[item.key.offset] = {};
    } else {
      MDFS_TRY_ASSIGN(const format::FileCell cell, format::decode_file_cell(item.value, object_.block_size));
      for (const format::FileRun& run : cell.runs) remove(run.place());
      transaction_.erase(item.key);
    }
  }
  return object_.may_have_strips ? free_strips(first, last) : Status{};
}

// Of the pages [first, last].
Status Publisher::free_strips(std::uint64_t first, std::uint64_t last) {
  constexpr std::uint64_t kLastPage = UINT64_MAX / MDFS_STRIPS_PER_PAGE;
  if (first > kLastPage) return {};
  MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                  transaction_.scan(strip_key(object_, first, 0),
                                    strip_key(object_, std::min(last, kLastPage), MDFS_STRIPS_PER_PAGE - 1), SIZE_MAX));
  for (const store::Item& item : items) {
    MDFS_TRY_ASSIGN(const format::Strip strip, format::decode_strip(item.value, object_.table, object_.block_size));
    for (unsigned place = 0; place < format::kMaxPlaces; ++place)
      if (strip.has(place)) remove(strip.part(place, object_.block_size));
    transaction_.erase(item.key);
    pages_[item.key.offset / MDFS_STRIPS_PER_PAGE] = {};
  }
  return {};
}

void update_cached_pages(Core& core, const OpenObject& object, const Publisher::Pages& pages) {
  for (const auto& [number, page] : pages)
    core.extent_map.replace(object, number, {page.page, page.strips, page.copies});
}

}  // namespace mdfs::engine
