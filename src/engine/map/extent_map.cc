// The extent map: where stored bytes lie.
// SPDX-License-Identifier: Apache-2.0
#include "engine/map/extent_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

format::Key page_key(const OpenObject& object, std::uint64_t page) { return {object.number, MDFS_KIND_EXTENTS, page}; }

format::Key strip_key(const OpenObject& object, std::uint64_t page, unsigned number) {
  return {object.number, MDFS_KIND_STRIP, page * MDFS_STRIPS_PER_PAGE + number};
}

format::Key cell_key(const OpenObject& object, std::uint64_t cell) {
  return {object.number, MDFS_KIND_FILE_CELL, cell};
}

format::Key copies_key(const OpenObject& object, std::uint64_t page) {
  return format::copies_key(page_key(object, page));
}

format::Key inline_key(const OpenObject& object) { return {object.number, MDFS_KIND_INLINE, 0}; }

ExtentMap::ExtentMap(store::Store& store) : store_(store) {
  for (unsigned disk = 0; disk < store.disk_count(); ++disk) disk_blocks_[disk] = store.disk_info(disk).blocks;
}

Status ExtentMap::check(const store::Run& run) const {
  if (run.disk < disk_blocks_.size() && inside(run.block, run.blocks, disk_blocks_[run.disk])) return {};
  if (run.disk >= std::min<std::size_t>(store_.disk_count(), disk_blocks_.size()))
    return {Errc::kCorrupt, fmt::format("extents.disk: disk {} of {}", run.disk, store_.disk_count())};
  disk_blocks_[run.disk] = store_.disk_info(run.disk).blocks;  // it may have come since
  if (inside(run.block, run.blocks, disk_blocks_[run.disk])) return {};
  return {Errc::kCorrupt, fmt::format("extents.block: blocks {}+{} of disk {}, which has {}", run.block, run.blocks,
                                      run.disk, disk_blocks_[run.disk].load())};
}

Status ExtentMap::check(const StoredExtent& extent) const {
  for (const store::Run& run : extent.all_runs()) MDFS_TRY(check(run));
  for (const format::GroupPiece& piece : extent.others.pieces()) MDFS_TRY(check(piece.run));
  return {};
}

Result<Strips> strips_of(const OpenObject& object, const std::vector<store::Item>& items) {
  Strips strips;
  for (const store::Item& item : items) {
    MDFS_TRY_ASSIGN(format::Strip strip, format::decode_strip(item.value, object.table, object.block_size));
    strips.set(static_cast<unsigned>(item.key.offset % MDFS_STRIPS_PER_PAGE), std::move(strip));
  }
  return strips;
}

std::size_t ExtentMap::cost(const KnownPage& known) {
  std::size_t bytes = kPageOverheadBytes + std::size_t{known.page->count()} * known.page->shape().record_bytes();
  if (known.copies != nullptr)
    bytes += known.copies->encoded_bytes(known.page->shape()) + known.copies->count() * kCopyBytes;
  for (const Strips::Entry& entry : *known.strips) bytes += kPageOverheadBytes + 4 * entry.strip->crc32c.size();
  return bytes;
}

void ExtentMap::erase(Entries::iterator entry) {
  bytes_ -= entry->bytes;
  map_.erase(entry->name);
  entries_.erase(entry);
}

void ExtentMap::insert(const Name& name, KnownPage known) {
  if (const auto found = map_.find(name); found != map_.end()) erase(found->second);
  const std::size_t bytes = cost(known);
  entries_.push_front({name, std::move(known), bytes});
  map_.emplace(name, entries_.begin());
  bytes_ += bytes;
  while (bytes_ > kLimitBytes && entries_.size() > 1) erase(std::prev(entries_.end()));
}

KnownPage ExtentMap::kept_page(const OpenObject& object, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = map_.find({object.number, number});
  return found == map_.end() ? KnownPage{} : found->second->known;
}

Result<KnownPage> ExtentMap::page(const OpenObject& object, std::uint64_t number, bool fresh) {
  const Name name{object.number, number};
  std::uint64_t version = 0;
  {
    const std::lock_guard lock(mutex_);
    version = version_;
    const auto found = map_.find(name);
    if (found != map_.end() && !fresh) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return found->second->known;
    }
  }
  // Strips first: if both change meanwhile, what has become a record since is seen twice rather than not at all.
  Strips strips;
  if (object.may_have_strips) {
    MDFS_TRY_ASSIGN(const auto items, store_.scan(strip_key(object, number, 0),
                                                  strip_key(object, number, MDFS_STRIPS_PER_PAGE - 1), SIZE_MAX));
    MDFS_TRY_ASSIGN(strips, strips_of(object, items));
  }
  MDFS_TRY_ASSIGN(const auto value, store_.get(page_key(object, number)));
  auto page = std::make_shared<format::ExtentPage>(object.table);
  if (value) {
    MDFS_TRY_ASSIGN(*page, format::ExtentPage::decode(*value, object.table));
  }
  MDFS_TRY_ASSIGN(auto copies, copies_of(store_, object, number));
  KnownPage known{std::move(page), std::make_shared<const Strips>(std::move(strips)), std::move(copies)};
  const std::lock_guard lock(mutex_);
  if (version == version_) insert(name, known);
  return known;
}

std::uint64_t MappedExtent::blocks() const {
  std::uint64_t blocks = record.blocks();
  for (const StripPart& part : parts) blocks += part.stored.blocks();
  return blocks;
}

bool MappedExtent::has_copied_part() const {
  return std::any_of(parts.begin(), parts.end(), [](const StripPart& part) { return part.stored.has_copy(); });
}

void MappedExtent::append_runs(std::vector<store::Run>& all) const {
  for (const store::Run& run : record.all_runs()) all.push_back(run);
  for (const StripPart& part : parts)
    for (const store::Run& run : part.stored.all_runs()) all.push_back(run);
}

Error runs_missing(const OpenObject& object) {
  return {Errc::kCorrupt, fmt::format("extent-runs.missing: a scattered extent of object {}", object.number)};
}

Result<MappedExtent> ExtentMap::extent(const OpenObject& object, const geometry::Coord& coord, bool fresh) {
  const geometry::PagePlace place = object.page_of(coord);
  MDFS_TRY_ASSIGN(const KnownPage known, page(object, place.page, fresh));
  MappedExtent extent;
  for (const Strips::Entry& entry : *known.strips) {
    const format::Strip& strip = *entry.strip;
    if (!entry.has(place.place)) continue;
    extent.parts.push_back({strip.stored_part(place.place, object.block_size), strip.begin, strip.bytes});
    MDFS_TRY(check(extent.parts.back().stored));
  }
  MDFS_TRY_ASSIGN(auto record, format::read_pieces(store_, page_key(object, place.page), *known.page,
                                                   known.copies.get(), place.place, object.block_size));
  if (!record) return runs_missing(object);
  MDFS_TRY(check(*record));
  extent.record = std::move(*record);
  return extent;
}

Result<format::FileCell> ExtentMap::cell(const OpenObject& object, std::uint64_t index) {
  MDFS_TRY_ASSIGN(const auto value, store_.get(cell_key(object, index)));
  if (!value) return format::FileCell{};
  MDFS_TRY_ASSIGN(format::FileCell cell, format::decode_file_cell(*value, object.block_size));
  for (const format::FileRun& run : cell.runs) MDFS_TRY(check(run.place()));
  return cell;
}

Result<format::CellPieces> ExtentMap::cell_pieces(const OpenObject& object, std::uint64_t index) {
  const format::Key key = cell_key(object, index);
  MDFS_TRY_ASSIGN(auto value, store_.get(key));
  if (!value) return format::CellPieces();
  return cell_pieces(object, {key, std::move(*value)});
}

Result<format::CellPieces> ExtentMap::cell_pieces(const OpenObject& object, const store::Item& item) {
  MDFS_TRY_ASSIGN(format::CellPieces pieces,
                  format::cell_with_copies(store_, item.key, item.value, object.block_size, has_copies()));
  for (const store::Run& run : pieces.all_runs()) MDFS_TRY(check(run));
  return pieces;
}

Result<std::optional<ByteVector>> ExtentMap::inline_bytes(const OpenObject& object) {
  return store_.get(inline_key(object));
}

void ExtentMap::replace(const OpenObject& object, std::uint64_t number, KnownPage page) {
  const Name name{object.number, number};
  const std::lock_guard lock(mutex_);
  ++version_;
  if (page.page != nullptr) {
    insert(name, std::move(page));
  } else if (const auto found = map_.find(name); found != map_.end()) {
    erase(found->second);
  }
}

void ExtentMap::forget_all(const OpenObject& object) {
  const std::lock_guard lock(mutex_);
  ++version_;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto here = entry++;
    if (here->name.object == object.number) erase(here);
  }
}

}  // namespace mdfs::engine
