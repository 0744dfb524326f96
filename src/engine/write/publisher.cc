// Publishing: records of extents and cells inside a transaction.
// SPDX-License-Identifier: Apache-2.0
#include "engine/write/publisher.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {
namespace {

// Of an item with copies and groups. Below MDFS_MAX_ITEM as much as copies of all extents of a page may still take.
constexpr std::size_t kMostCopyPageBytes = 3584;

}  // namespace

void Publisher::add(const store::Run& run, std::uint64_t other_disks) {
  if (object_.is_level.load(std::memory_order_relaxed))
    transaction_.publish(run, 0);
  else if (other_disks != 0)
    transaction_.publish(run, other_disks);
  else
    transaction_.publish(run);
  change_blocks_ += run.blocks;
}

void Publisher::remove(const store::Run& run) {
  transaction_.free(run);
  change_blocks_ -= run.blocks;
}

Status Publisher::update_inode() {
  std::uint64_t size = 0;
  {
    const std::lock_guard lock(object_.state_mutex);
    size = object_.published_size;
  }
  return object_.update(transaction_, {size, stored_bytes_change(), false});
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
    transaction_.put(copies_key(object_, number), page.own_copies->encode(object_.table));
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

void Publisher::remove_part(const format::Strip& strip, unsigned place) {
  for (const store::Run& run : strip.stored_part(place, object_.block_size).all_runs()) remove(run);
}

void Publisher::free_parts(Page& page, std::uint64_t places) {
  std::vector<Strips::Entry> touched;
  for (const Strips::Entry& entry : *page.strips)
    if ((entry.live & places) != 0) touched.push_back(entry);
  for (const Strips::Entry& entry : touched) {
    const std::uint64_t freed = entry.live & places;
    for (unsigned place = 0; place < format::kMaxPlaces; ++place)
      if ((freed >> place & 1) != 0) remove_part(*entry.strip, place);
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
    unsigned kept_blocks = 0;
    if (entry.begin < bytes) {
      const unsigned number = page.strips->free_number();
      if (number >= MDFS_STRIPS_PER_PAGE) return {Errc::kBusy, "no number left for a strip"};
      format::Strip kept = entry.strip->shortened_part(place, bytes - entry.begin, object_.block_size);
      kept_blocks = kept.part_blocks(object_.block_size);
      strips_to_change(page).set(number, std::move(kept));
      page.changed.insert(number);
    }
    for (store::Run freed : entry.strip->stored_part(place, object_.block_size).all_runs()) {
      freed.block += kept_blocks;
      freed.blocks -= kept_blocks;
      if (freed.blocks > 0) remove(freed);
    }
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
    if (strip.copy) strip.copy->birth = strip.birth;
    for (unsigned place = 0; place < format::kMaxPlaces; ++place) {
      if (!strip.has(place)) continue;
      const StoredExtent part = strip.stored_part(place, object_.block_size);
      add(part.first(), StoredExtent::disks_of(part.copy));
      if (part.has_copy()) add(part.copy.front(), StoredExtent::disks_of(part.runs));
    }
    strips_to_change(*page).set(number, std::move(strip));
    page->changed.insert(number);
    pages.insert(staged.page);
  }
  for (const std::uint64_t number : pages) put_page(number, pages_[number]);
  return {};
}

Result<StoredExtent> Publisher::free_record(Page& page, const geometry::PagePlace& place, const StoredExtent& kept,
                                            bool is_moved) {
  const format::Key key = page_key(object_, place.page);
  MDFS_TRY_ASSIGN(
      std::optional<StoredExtent> freed,
      format::read_pieces(transaction_, key, *page.page, page.copies.get(), place.place, object_.block_size));
  if (!freed) return runs_missing(object_);
  if (!freed->is_stored()) return std::move(*freed);
  const bool is_member = page.copies != nullptr && page.copies->group_of(place.place) != nullptr;
  const bool stays_as_leaver = is_member && !is_moved && leave_group(page, place.place);
  for (const format::Runs* const piece : {&freed->runs, &freed->copy})
    if (!stays_as_leaver && !(*piece == kept.runs) && !(*piece == kept.copy))
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
    if (extent.others) return transaction_.generation();  // add_member() follows
    const std::uint64_t others = StoredExtent::disks_of(&piece == &extent.runs ? extent.copy : extent.runs);
    for (const store::Run& run : piece) add(run, others);
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

// ---- groups

// Of a member that has moved: when the others have moved, too.
void Publisher::add_member(const Page& page, unsigned place) {
  const std::optional<format::GroupPiece> piece = page.page->piece(place, object_.block_size);
  const format::ParityGroup* const group = page.copies == nullptr ? nullptr : page.copies->group_of(place);
  MDFS_CHECK(piece && group != nullptr);
  add(piece->run, group->others_of(place, *page.page, object_.block_size).disks());
}

// The last member takes the group with it. A scattered member can be no leaver, and an item holds only so many: then
// the other members stay without a parity until they are grouped again.
bool Publisher::leave_group(Page& page, unsigned place) {
  const format::ParityGroup& group = *page.copies->group_of(place);
  const std::optional<format::ExtentRecord> record = page.page->get(place);
  const bool is_last = std::has_single_bit(group.members);
  if (!is_last && record && !record->is_scattered()) {
    format::CopyPage left = *page.copies;
    left.leave_group(place, *record);
    if (left.encoded_bytes(object_.table) <= kMostCopyPageBytes) {
      copies_to_change(page) = std::move(left);
      page.is_ungrouped = true;
      return true;
    }
  }
  page.is_ungrouped = page.is_ungrouped || !is_last;
  free_group(page, place);
  return false;
}

void Publisher::free_group(Page& page, unsigned place) {
  for (const store::Run& run : page.copies->group_of(place)->own_runs(object_.block_size)) remove(run);
  copies_to_change(page).erase_group(place);
}

void Publisher::free_groups(Page& page, std::uint64_t places) {
  for (unsigned place = 0; place < format::kMaxPlaces; ++place)
    if ((places >> place & 1) != 0 && page.copies != nullptr && page.copies->group_of(place) != nullptr)
      free_group(page, place);
}

Status Publisher::dissolve_groups(std::uint64_t number, std::uint64_t places) {
  MDFS_TRY_ASSIGN(Page* const page, get_page(number));
  free_groups(*page, places);
  put_page(number, *page);
  return {};
}

Status Publisher::put_group(std::uint64_t number, Page& page, format::ParityGroup group) {
  group.parity.birth = group.parity.written = transaction_.generation();
  const auto stored = group.stored_parity(*page.page, object_.block_size);
  if (!stored) return {Errc::kBusy, "a member of a parity group lies scattered"};
  add(stored->first(), stored->others.disks());
  copies_to_change(page).add_group(std::move(group));
  put_page(number, page);
  return {};
}

Status Publisher::add_group(std::uint64_t number, std::uint64_t members, const StoredExtent& parity) {
  MDFS_TRY_ASSIGN(Page* const page, get_page(number));
  MDFS_CHECK(parity.is_contiguous());
  format::ParityGroup group;
  group.members = members;
  group.parity = format::ExtentRecord::of(parity);
  return put_group(number, *page, std::move(group));
}

Status Publisher::move_parity(const geometry::PagePlace& place, const format::Runs& to) {
  MDFS_TRY_ASSIGN(Page* const page, get_page(place.page));
  MDFS_CHECK(to.size() == 1 && page->copies != nullptr && page->copies->group_of(place.place) != nullptr);
  format::ParityGroup group = *page->copies->group_of(place.place);
  for (const store::Run& run : group.parity.stored(object_.table, object_.block_size).runs) remove(run);
  copies_to_change(*page).erase_group(place.place);
  group.parity.address = to.front().address().packed();
  return put_group(place.page, *page, std::move(group));
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
      MDFS_TRY_ASSIGN(const StoredExtent old, free_record(*state, {number, place}, staged->extent, staged->is_moved));
      note_home(*staged, old);
      if (staged->extent.is_stored()) put_record(*state, {number, place}, *staged, old);
    }
    for (const auto& [place, staged] : list)
      if (staged->extent.others) add_member(*state, place);
    if (replaced != 0 && object_.group_members.load(std::memory_order_relaxed) > 1) state->is_ungrouped = true;
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

Result<format::CellPieces> Publisher::get_cell(std::uint64_t cell) {
  return format::read_cell(transaction_, cell_key(object_, cell), object_.block_size, core_.extent_map.has_copies());
}

void Publisher::put_cell(std::uint64_t cell, const format::CellPieces& before, const format::CellPieces& now) {
  const format::Key key = cell_key(object_, cell);
  if (now.first.empty())
    transaction_.erase(key);
  else
    transaction_.put(key, format::encode(now.first));
  if (now.has_copies())
    transaction_.put(format::cell_copies_key(key), format::encode_cell_copies(now));
  else if (before.has_copies())
    transaction_.erase(format::cell_copies_key(key));
}

void Publisher::punch_blocks(format::FileCell& cell, std::uint32_t blocks) {
  for (unsigned block = 0; block < 32; ++block)
    if ((blocks >> block & 1) != 0)
      for (const store::Run& freed : cell.punch(block, 1)) remove(freed);
}

// What is contiguous in both becomes one run.
void Publisher::place_blocks(const Staged& staged, const format::Runs& runs, const format::FileCell& old,
                             const format::Runs& other, format::FileCell& cell) {
  std::size_t number = 0;
  std::size_t run = 0;
  std::uint32_t used = 0;
  for (unsigned block = 0; block < 32; ++block) {
    if ((staged.blocks >> block & 1) == 0) continue;
    const store::Run& from = runs[run];
    const std::optional<format::BlockPlace> before = old.find(block);
    format::FileRun placed;
    placed.address = {from.disk, from.block + used};
    placed.birth = transaction_.generation();
    placed.written = staged.is_moved && before ? before->written : placed.birth;
    placed.first = static_cast<std::uint16_t>(block);
    placed.crc32c = {staged.extent.crc32c[number++]};
    for (const store::Run& freed : cell.replace(placed)) remove(freed);
    if (++used == from.blocks) {
      ++run;
      used = 0;
    }
  }
  for (const store::Run& taken : runs) add(taken, StoredExtent::disks_of(other));
}

Status Publisher::publish_cells(const std::vector<Staged>& extents) {
  for (const Staged& staged : extents) {
    if (staged.blocks == 0 && staged.holes == 0) continue;
    MDFS_TRY_ASSIGN(const format::CellPieces before, get_cell(staged.index));
    format::CellPieces cell = before;
    if (staged.cell_piece != CellPieceKind::kCopy) punch_blocks(cell.first, staged.holes);
    if (staged.cell_piece != CellPieceKind::kFirst) punch_blocks(cell.copy, staged.holes);
    if (staged.blocks != 0 && staged.cell_piece != CellPieceKind::kCopy) {
      const bool keeps_copy = staged.cell_piece == CellPieceKind::kFirst;
      place_blocks(staged, staged.extent.runs, before.first,
                   keeps_copy ? cell.copy.runs_of(staged.blocks) : staged.extent.copy, cell.first);
    }
    if (staged.extent.has_copy())
      place_blocks(staged, staged.extent.copy, before.first, cell.first.runs_of(staged.blocks), cell.copy);
    else if (staged.cell_piece == CellPieceKind::kBoth)
      punch_blocks(cell.copy, staged.blocks);
    put_cell(staged.index, before, cell);
  }
  return {};
}

Status Publisher::punch_cell(std::uint64_t number, std::uint32_t blocks) {
  MDFS_TRY_ASSIGN(const format::CellPieces before, get_cell(number));
  format::CellPieces cell = before;
  punch_blocks(cell.first, blocks);
  punch_blocks(cell.copy, blocks);
  put_cell(number, before, cell);
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
      free_groups(page, ~std::uint64_t{0});
      for (unsigned place = 0; place < object_.page_box.places; ++place)
        MDFS_TRY(free_record(page, {item.key.offset, place}));
      transaction_.erase(item.key);
      pages_[item.key.offset] = {};
    } else {
      MDFS_TRY_ASSIGN(const format::CellPieces cell,
                      format::cell_with_copies(transaction_, item.key, item.value, object_.block_size,
                                               core_.extent_map.has_copies()));
      for (const store::Run& run : cell.all_runs()) remove(run);
      put_cell(item.key.offset, cell, {});
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
      if (strip.has(place)) remove_part(strip, place);
    transaction_.erase(item.key);
    pages_[item.key.offset / MDFS_STRIPS_PER_PAGE] = {};
  }
  return {};
}

void update_cached_pages(Core& core, const OpenObject& object, const Publisher::Pages& pages) {
  for (const auto& [number, page] : pages)
    core.extent_map.replace(object, number, {page.page, page.strips, page.copies});
  for (const auto& [number, page] : pages)
    if (page.is_ungrouped) core.relocations.note_ungrouped(object.number, number);
}

}  // namespace mdfs::engine
