// Items and objects.
// SPDX-License-Identifier: Apache-2.0
#include "store/check/objects.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/checked.h"
#include "format/cell_copies.h"
#include "format/dirent.h"
#include "format/disk_errors.h"
#include "format/extent_copies.h"
#include "format/file_cell.h"
#include "format/geometry_item.h"
#include "format/level_item.h"
#include "format/limits.h"
#include "format/operation.h"
#include "format/strip.h"
#include "geometry/page.h"
#include "store/check/tree_scan.h"

namespace mdfs::store {
namespace {

using format::Key;

std::string name_of(const Key& key) { return fmt::format("object {}, item {}", key.object, to_string(key)); }

bool may_be_object(std::uint64_t number) {
  return number == MDFS_OBJECT_ROOT_DIRECTORY || number == MDFS_OBJECT_LOST_FOUND ||
         (number >= MDFS_OBJECT_FIRST && number < format::kMaxObject);
}

bool is_of_file(std::uint64_t kind) { return kind == MDFS_KIND_FILE_CELL || kind == MDFS_KIND_FILE_PARITY; }

// Items of the volume as a whole are about no object.
About about(const Key& key) { return may_be_object(key.object) ? About{key.object} : About{}; }

}  // namespace

bool ObjectSummary::is_directory() const { return S_ISDIR(mode); }

void ItemChecker::report(FindingId id, std::string where, About about) {
  if (!again_) findings_.add(id, std::move(where), about);
}

void ItemChecker::edit(const Key& key, ItemEdit change) {
  if (!again_) edits_.items[key] = std::move(change);
}

void ItemChecker::erase_record(const Key& key, unsigned part) {
  if (!again_) records_fix(key).erase.insert(part);
}

void ItemChecker::item(const Key& key, ConstBytes value) {
  ++items_;
  if (key.object == MDFS_OBJECT_NONE) return secret_item(key, value);
  if (!secret_passed_) secret_is_lost();
  if (key.object != current_.number) {
    finish_object();
    current_ = {};
    current_.number = key.object;
  }
  if (key.object == MDFS_OBJECT_VOLUME) return again_ ? void() : volume_item(key, value);
  if (!may_be_object(key.object) || key.kind == 0) return misplaced(key);
  if (key.kind == MDFS_KIND_INODE) return inode(key, value);
  if (current_.given_up) return;
  const bool rest = key.kind >= MDFS_KIND_XATTR_REST && key.kind < MDFS_KIND_XATTR_REST + MDFS_MAX_XATTR_RESTS;
  const bool about_names = key.kind <= MDFS_KIND_XATTR || rest;
  if (again_ && about_names && current_.inode) return;
  const bool about_copies = has_copies_ && (key.kind == MDFS_KIND_PARITY || key.kind == MDFS_KIND_PARITY_RUNS ||
                                            key.kind == MDFS_KIND_FILE_PARITY);
  const bool known = key.kind <= MDFS_KIND_EXTENT_RUNS || key.kind == MDFS_KIND_STRIP || key.kind == MDFS_KIND_LEVEL ||
                     about_copies || rest;
  if (!known) return;  // of a later version, or reserved: let it be
  if (!current_.inode) return give_up(FindingId::kInodeMissing, "first item left: " + to_string(key));
  if (rest) return xattr_rest(key, value);
  switch (key.kind) {
    case MDFS_KIND_INLINE:
      return inline_bytes(key, value);
    case MDFS_KIND_SYMLINK:
      return symlink(key, value);
    case MDFS_KIND_DIRENT:
      return dirent(key, value);
    case MDFS_KIND_XATTR:
      return xattr(key, value);
    case MDFS_KIND_GEOMETRY:
      return geometry(key, value);
    case MDFS_KIND_EXTENTS:
      return extents(key, value);
    case MDFS_KIND_EXTENT_RUNS:
      return extent_runs(key, value);
    case MDFS_KIND_FILE_CELL:
      return file_cell(key, value);
    case MDFS_KIND_FILE_PARITY:
      return cell_copies(key, value);
    case MDFS_KIND_PARITY:
      return copies(key, value);
    case MDFS_KIND_PARITY_RUNS:
      return copy_runs(key, value);
    case MDFS_KIND_STRIP:
      return strip(key, value);
    case MDFS_KIND_LEVEL:
      return level(key, value);
    default:
      return misplaced(key);
  }
}

void ItemChecker::secret_item(const Key& key, ConstBytes value) {
  if (key != format::kSecretKey) {
    if (key.kind <= MDFS_KIND_SECRET) misplaced(key);
    return;  // of a later version
  }
  const auto secret = format::decode_secret(value);
  if (!secret.ok()) return secret_is_lost();
  table_.secret = *secret;
  secret_passed_ = true;
}

void ItemChecker::secret_is_lost() {
  report(FindingId::kSecretMissing, "");
  edit(format::kSecretKey, PutItem{format::encode(table_.secret)});
  secret_passed_ = secret_lost_ = true;
}

void ItemChecker::volume_item(const Key& key, ConstBytes value) {
  if (key.kind == MDFS_KIND_ORPHAN) {
    table_.orphans.insert(key.offset);
  } else if (key.kind == MDFS_KIND_PLACEMENT) {
    const auto placement = format::decode_placement(value);
    const bool inside = placement.ok() && std::all_of(placement->slot.begin(), placement->slot.end(),
                                                      [&](auto disk) { return disk < blocks_.layouts().size(); });
    if (!inside) return damaged(key, placement.ok() ? Error{Errc::kCorrupt, "placement.tables"} : placement.error());
    table_.placements.insert(key.offset);
  } else if (key.kind == MDFS_KIND_DISK_ERRORS) {
    const auto errors = format::decode_disk_errors(value);
    if (errors.ok() && key.offset < MDFS_MAX_DISKS) return;
    report(FindingId::kDiskErrorsDamaged, name_of(key));
    edit(key, EraseItem{});
  } else if (key.kind == MDFS_KIND_OPERATION) {
    if (key.offset < MDFS_OPERATION_SCRUB || key.offset > MDFS_OPERATION_PROTECT) return;  // of a later version
    const auto record = format::decode_operation(value);
    if (record.ok()) return;
    report(FindingId::kOperationDamaged, name_of(key) + ": " + record.error().where);
    edit(key, EraseItem{});
  } else if (key.kind <= MDFS_KIND_EXTENT_RUNS) {
    misplaced(key);
  }
}

void ItemChecker::inode(const Key& key, ConstBytes value) {
  if (key.offset != 0) return misplaced(key);
  auto decoded = format::decode_inode(value);
  if (!decoded.ok()) return give_up(FindingId::kInodeDamaged, decoded.error().where);
  current_.inode = *decoded;
  if (again_) return;
  table_.highest_object = std::max(table_.highest_object, key.object);
  ObjectSummary& summary = table_.objects[key.object];
  summary.mode = decoded->mode;
  summary.links = decoded->links;
  summary.parent = decoded->parent;
  summary.entries = decoded->entries;
  summary.placement = decoded->placement;
  summary.reach = decoded->reach;
  summary.is_image = decoded->is_image();
}

bool ItemChecker::takes_data(bool image) {
  const format::Inode& inode = *current_.inode;
  if (!inode.is_regular()) return false;
  if (inode.is_image() == image) return true;
  if (!table_.orphans.contains(current_.number)) return false;
  if (!again_) table_.objects[current_.number].leftovers = true;
  return true;
}

void ItemChecker::inline_bytes(const Key& key, ConstBytes value) {
  if (!current_.inode->is_inline() || key.offset != 0) return misplaced(key);
  if (const Status status = format::check_inline(value); !status.ok()) return damaged(key, status.error());
  if (value.size() > current_.inode->size) {
    report(FindingId::kBeyondEnd, name_of(key), {key.object});
    const ConstBytes kept = value.first(current_.inode->size);
    edit(key, PutItem{ByteVector(kept.begin(), kept.end())});
  }
}

void ItemChecker::symlink(const Key& key, ConstBytes value) {
  if (!current_.inode->is_symlink() || key.offset != 0) return misplaced(key);
  const auto target = format::decode_symlink(value);
  if (!target.ok()) return give_up(FindingId::kContentMissing, target.error().where);
  current_.has_target = true;
}

void ItemChecker::dirent(const Key& key, ConstBytes value) {
  if (!current_.inode->is_directory()) return misplaced(key);
  const auto entry = format::decode_dirent(value);
  if (!entry.ok()) return damaged(key, entry.error());
  const std::string where = fmt::format("directory {}, entry \"{}\"", key.object, entry->name);
  auto& near = current_.near;
  for (; !near.empty() && key.offset - near.front().first > current_.inode->reach; near.pop_front()) {
    const auto passed = current_.near_names.find(near.front().second);
    if (--passed->second == 0) current_.near_names.erase(passed);
  }
  const Current::NameId id{format::first_cookie(table_.secret, entry->name), std::hash<std::string>()(entry->name)};
  near.emplace_back(key.offset, id);
  if (++current_.near_names[id] > 1) {
    report(FindingId::kEntryDuplicate, where, {key.object, key.offset});
    edit(key, EraseItem{});
    return;
  }
  if (!format::cookie_fits(table_.secret, key.offset, entry->name, current_.inode->reach)) {
    if (!secret_lost_) report(FindingId::kEntryCookie, where, {key.object, key.offset});
    edit(key, EraseItem{});
    table_.moved.push_back({key.object, entry->inode, entry->name});
  }
  if (key.object == MDFS_OBJECT_ROOT_DIRECTORY && entry->name.starts_with("lost+found"))
    table_.root_names[entry->name] = entry->inode;
  table_.entries.push_back({key.object, key.offset, entry->inode, entry->type});
}

void ItemChecker::xattr(const Key& key, ConstBytes value) {
  const auto decoded = format::decode_xattr(value);
  if (!decoded.ok()) return damaged(key, decoded.error());
  const auto expect_rest = [&](std::uint64_t new_cookie) {
    if (decoded->rest_length > 0) current_.long_values[key.offset] = {decoded->rest_length, new_cookie, 0};
  };
  if (format::cookie_fits(table_.secret, key.offset, decoded->name, current_.inode->reach))
    return expect_rest(key.offset);
  if (!secret_lost_) return damaged(key, {Errc::kCorrupt, "xattr.cookie"});
  edits_.items.try_emplace(key, EraseItem{});
  std::uint64_t cookie = format::first_cookie(table_.secret, decoded->name);
  std::uint32_t& reach = table_.objects[key.object].reach;
  for (std::uint32_t distance = 0;; ++distance, ++cookie) {
    const Key place{key.object, MDFS_KIND_XATTR, cookie};
    if (!edits_.items.try_emplace(place, PutItem{ByteVector(value.begin(), value.end())}).second) continue;
    if (distance > reach) edits_.inodes[key.object].reach = reach = distance;
    return expect_rest(cookie);
  }
}

void ItemChecker::xattr_rest(const Key& key, ConstBytes value) {
  const auto found = current_.long_values.find(key.offset);
  if (found == current_.long_values.end()) return misplaced(key);
  auto& [rest_length, new_cookie, parts] = found->second;
  const auto number = static_cast<unsigned>(key.kind - MDFS_KIND_XATTR_REST);
  if (number >= format::xattr_rests(rest_length)) return misplaced(key);
  if (number == parts && value.size() == format::xattr_rest_bytes(rest_length, number)) ++parts;
  if (new_cookie == key.offset) return;
  edits_.items.try_emplace(key, EraseItem{});
  edits_.items[{key.object, key.kind, new_cookie}] = PutItem{ByteVector(value.begin(), value.end())};
}

// A value without all of its parts goes as a whole.
void ItemChecker::finish_xattrs() {
  for (const auto& [cookie, value] : current_.long_values) {
    const unsigned parts = format::xattr_rests(value.rest_length);
    if (value.found == parts) continue;
    damaged({current_.number, MDFS_KIND_XATTR, value.new_cookie}, {Errc::kCorrupt, "xattr.rest"});
    for (unsigned number = 0; number < parts; ++number)
      edit({current_.number, MDFS_KIND_XATTR_REST + number, value.new_cookie}, EraseItem{});
  }
}

void ItemChecker::geometry(const Key& key, ConstBytes value) {
  const format::Inode& inode = *current_.inode;
  if (!takes_data(true) || key.offset != 0) return misplaced(key);
  auto decoded = format::decode_geometry(value);
  if (!decoded.ok()) return give_up(FindingId::kContentMissing, decoded.error().where);
  current_.geometry = std::move(*decoded);
  geometry::Geometry& geometry = *current_.geometry;
  current_.shape = format::table_shape(geometry);
  const std::uint64_t steps = ceil_div(inode.size, geometry.slab_bytes());
  if (geometry.shape[0] == steps || !inode.is_image()) return;
  report(FindingId::kImageSize,
         fmt::format("object {}: shape {}, by its size {}", key.object, geometry.shape[0], steps), {key.object});
  edit(key, FixShape{steps});
  geometry.shape[0] = steps;
}

FixRecords& ItemChecker::records_fix(const Key& key) {
  const auto [edit, is_new] = edits_.items.try_emplace(key, FixRecords{});
  auto* fix = std::get_if<FixRecords>(&edit->second);
  if (fix == nullptr) return unused_;
  if (!is_of_file(key.kind)) fix->shape = current_.shape;
  return *fix;
}

bool ItemChecker::use(const Key& key, unsigned part, const format::Runs& runs) {
  const auto name_run = [&](const format::Run& run) {
    return fmt::format("{}, part {}: {} blocks at {} of disk {}", name_of(key), part, run.blocks, run.block, run.disk);
  };
  for (const format::Run& run : runs) {
    if (blocks_.holds(run)) continue;
    report(FindingId::kAddressOutside, name_run(run), {key.object});
    erase_record(key, part);
    return false;
  }
  const bool counts = current_.inode->is_image() != is_of_file(key.kind);
  for (const format::Run& run : runs) {
    if (counts) current_.stored_blocks += run.blocks;
    if (blocks_.mark(run)) continue;
    auto& moves = records_fix(key).move;
    // Findings of an earlier section have been reported.
    if (!blocks_.begins_before(run) || !moves.contains(part))
      findings_.add(FindingId::kBlockUsedTwice, name_run(run), {key.object});
    moves[part] = runs;
  }
  return true;
}

bool ItemChecker::page_is_inside(std::uint64_t page) const {
  const geometry::Geometry& geometry = *current_.geometry;
  const geometry::PageBox box = geometry::page_box(geometry.rank, current_.shape.record_bytes());
  const geometry::Coord grid = geometry.grid();
  std::uint64_t pages = 1;
  for (unsigned i = 0; i < geometry.rank; ++i) {
    const auto product = checked_mul(pages, ceil_div(grid[i], box.side[i]));
    if (!product) return true;
    pages = *product;
  }
  return page < pages;
}

void ItemChecker::extents(const Key& key, ConstBytes value) {
  if (!takes_data(true)) return misplaced(key);
  if (!current_.geometry) return current_.inode->is_image() ? void() : misplaced(key);  // reported with the object
  const auto page = format::ExtentPage::decode(value, current_.shape);
  if (!page.ok()) return damaged(key, page.error());
  const bool page_inside = page_is_inside(key.offset);
  if (!page_inside) {
    report(FindingId::kBeyondEnd, name_of(key), {key.object});
    edit(key, EraseItem{});
  }
  for (unsigned place = 0; place < current_.shape.places(); ++place) {
    const auto record = page->get(place);
    if (!record) continue;
    extent(key, place, *record);
    if (!page_inside || place_is_inside(key.offset, place)) continue;
    report(FindingId::kBeyondEnd, fmt::format("{}, place {}", name_of(key), place), {key.object});
    erase_record(key, place);
  }
}

void ItemChecker::extent(const Key& key, unsigned place, const format::ExtentRecord& record) {
  StoredData data{record.stored(current_.shape, block_size_), key.object, key.offset * format::kMaxPlaces + place,
                  true};
  if (data.has_runs_item) {
    const std::uint64_t where = data.where;
    current_.scattered.emplace(where, std::move(data));
    return;
  }
  if (use(key, place, data.runs) && on_data_) on_data_(std::move(data));
}

void ItemChecker::extent_runs(const Key& key, ConstBytes value) {
  const auto waiting = current_.scattered.find(key.offset);
  if (waiting == current_.scattered.end()) return misplaced(key);
  StoredData data = std::move(waiting->second);
  auto runs = format::decode_extent_runs(value, ceil_div(data.stored_bytes, block_size_));
  if (!runs.ok()) return;  // the record stays in `scattered` and is reported at the end of the object
  current_.scattered.erase(waiting);
  data.runs = std::move(*runs);
  const Key page{key.object, MDFS_KIND_EXTENTS, key.offset / format::kMaxPlaces};
  if (use(page, static_cast<unsigned>(key.offset % format::kMaxPlaces), data.runs) && on_data_)
    on_data_(std::move(data));
}

bool ItemChecker::place_is_inside(std::uint64_t page, unsigned place) const {
  const geometry::Geometry& geometry = *current_.geometry;
  const geometry::PageBox box = geometry::page_box(geometry.rank, current_.shape.record_bytes());
  const geometry::Coord grid = geometry.grid();
  return geometry::in_grid(geometry.rank, grid, geometry::extent_at(geometry.rank, grid, box, {page, place}));
}

// Whether the copies belong to their records is found out when the tree is known (check_copies).
void ItemChecker::copies(const Key& key, ConstBytes value) {
  if (!takes_data(true)) return misplaced(key);
  if (!current_.geometry) return current_.inode->is_image() ? void() : misplaced(key);  // reported with the object
  const auto page = format::CopyPage::decode(value, current_.shape);
  if (!page.ok()) return damaged(key, page.error());
  if (!again_) table_.copy_pages.push_back({key, current_.shape});
  for (const format::ParityGroup& group : page->groups())
    for (const format::Run& run : group.own_runs(block_size_)) (void)use(key, group.lowest(), {run});
  for (const auto& [place, copy] : page->copies()) {
    if (copy.is_scattered()) {
      current_.scattered_copies.emplace(key.offset * format::kMaxPlaces + place, copy.stored_bytes);
      continue;
    }
    (void)use(key, place, {format::run_at(copy.address, copy.stored_bytes, block_size_)});
  }
}

void ItemChecker::copy_runs(const Key& key, ConstBytes value) {
  const auto waiting = current_.scattered_copies.find(key.offset);
  if (waiting == current_.scattered_copies.end()) return misplaced(key);
  const auto runs = format::decode_extent_runs(value, ceil_div(waiting->second, block_size_));
  if (!runs.ok()) return;  // reported at the end of the object
  current_.scattered_copies.erase(waiting);
  const Key page{key.object, MDFS_KIND_PARITY, key.offset / format::kMaxPlaces};
  (void)use(page, static_cast<unsigned>(key.offset % format::kMaxPlaces), *runs);
}

// Those whose runs did not come.
void ItemChecker::finish_copies() {
  for (const auto& [where, bytes] : current_.scattered_copies) {
    const Key page{current_.number, MDFS_KIND_PARITY, where / format::kMaxPlaces};
    const auto place = static_cast<unsigned>(where % format::kMaxPlaces);
    report(FindingId::kCopyStray, fmt::format("{}, place {}", name_of(page), place), {current_.number});
    erase_record(page, place);
    edit({current_.number, MDFS_KIND_PARITY_RUNS, where}, EraseItem{});
  }
}

void ItemChecker::strip(const Key& key, ConstBytes value) {
  if (!takes_data(true)) return misplaced(key);
  if (!current_.geometry) return current_.inode->is_image() ? void() : misplaced(key);  // reported with the object
  const auto strip = format::decode_strip(value, current_.shape, block_size_);
  if (!strip.ok()) return damaged(key, strip.error());
  const std::uint64_t page = key.offset / MDFS_STRIPS_PER_PAGE;
  if (page != current_.strip_page) current_.strip_ranges.clear();
  current_.strip_page = page;
  const bool page_inside = page_is_inside(page);
  if (!page_inside) {
    report(FindingId::kBeyondEnd, name_of(key), {key.object});
    edit(key, EraseItem{});
  }
  for (unsigned place = 0; place < format::kMaxPlaces; ++place) {
    if (!strip->has(place)) continue;
    const std::string where = fmt::format("{}, place {}", name_of(key), place);
    auto& ranges = current_.strip_ranges[place];
    const bool twice = std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
      return range.first < strip->end() && strip->begin < range.second;
    });
    ranges.emplace_back(strip->begin, strip->end());
    const bool inside = !page_inside || place_is_inside(page, place);
    if (!inside) report(FindingId::kBeyondEnd, where, {key.object});
    if (twice) report(FindingId::kStripTwice, where, {key.object});
    if (!inside || twice) erase_record(key, place);
    StoredData data{strip->stored_part(place, block_size_), key.object, page * format::kMaxPlaces + place, true};
    const bool copy_is_used = data.has_copy() && use(key, copy_part(place), data.copy);
    if (!use(key, place, data.runs) || !on_data_) continue;
    if (copy_is_used) {
      StoredData copy = data;
      static_cast<format::StoredExtent&>(copy) = data.by_copy();
      copy.is_copy = true;
      on_data_(std::move(copy));
    }
    on_data_(std::move(data));
  }
}

void ItemChecker::file_cell(const Key& key, ConstBytes value) {
  if (!takes_data(false) || current_.inode->is_inline()) return misplaced(key);
  const auto cell = format::decode_file_cell(value, block_size_);
  if (!cell.ok()) return damaged(key, cell.error());
  use_cell(key, *cell, true);
}

// Whether the copies belong to their blocks is found out when the tree is known (check_cell_copies).
void ItemChecker::cell_copies(const Key& key, ConstBytes value) {
  if (!takes_data(false) || current_.inode->is_inline()) return misplaced(key);
  format::CellPieces pieces;
  if (const Status status = format::decode_cell_copies(value, block_size_, pieces); !status.ok())
    return damaged(key, status.error());
  auto& files = table_.files_with_copies;
  if (!again_ && (files.empty() || files.back() != key.object)) files.push_back(key.object);
  use_cell(key, pieces.copy, false);
}

void ItemChecker::use_cell(const Key& key, const format::FileCell& cell, bool to_visitor) {
  const format::Inode& inode = *current_.inode;
  const auto start = checked_mul(key.offset, MDFS_FILE_CELL);
  if (!start || *start > format::kMaxFileBytes) return damaged(key, {Errc::kCorrupt, "file-cell.offset"});
  for (unsigned i = 0; i < cell.runs.size(); ++i) {
    StoredData data{cell.runs[i].stored(block_size_), key.object,
                    *start + std::uint64_t{cell.runs[i].first} * block_size_, false};
    if (use(key, i, data.runs) && to_visitor && on_data_) on_data_(std::move(data));
  }
  const std::uint64_t end_block = inode.size <= *start ? 0 : ceil_div(inode.size - *start, block_size_);
  if (cell.runs.back().end() <= end_block || inode.is_image()) return;
  report(FindingId::kBeyondEnd, name_of(key), {key.object});
  records_fix(key).end_block = static_cast<unsigned>(end_block);
}

// A name of the object with its samples.
void ItemChecker::level(const Key& key, ConstBytes value) {
  if (again_) return;
  if (!current_.inode->is_image() || key.offset == 0 || key.offset > MDFS_MAX_LEVELS) return misplaced(key);
  const auto level = format::decode_level(value);
  if (!level.ok()) return damaged(key, level.error());
  EntrySummary entry{key.object, key.offset, level->object, S_IFREG >> 12};
  entry.is_level = true;
  table_.entries.push_back(entry);
}

void ItemChecker::give_up(FindingId id, const std::string& why) {
  report(id, fmt::format("object {}: {}", current_.number, why), {current_.number});
  current_.given_up = true;
  current_.scattered.clear();
  edits_.erased_objects.insert(current_.number);
  table_.objects.erase(current_.number);
}

void ItemChecker::misplaced(const Key& key) {
  report(FindingId::kItemMisplaced, name_of(key), about(key));
  edit(key, EraseItem{});
}

void ItemChecker::damaged(const Key& key, const Error& error) {
  report(FindingId::kItemDamaged, name_of(key) + ": " + error.where, about(key));
  edit(key, EraseItem{});
}

void ItemChecker::finish_object() {
  if (again_) return;
  if (!current_.inode || current_.given_up) return;
  const format::Inode& inode = *current_.inode;
  if (inode.is_image() && !current_.geometry) return give_up(FindingId::kContentMissing, "no geometry");
  if (inode.is_symlink() && !current_.has_target) return give_up(FindingId::kContentMissing, "no target");
  finish_xattrs();
  finish_copies();
  for (const auto& [where, data] : current_.scattered) {
    const Key page{current_.number, MDFS_KIND_EXTENTS, where / format::kMaxPlaces};
    report(FindingId::kRunsMissing, fmt::format("{}, place {}", name_of(page), where % format::kMaxPlaces),
           {current_.number});
    erase_record(page, static_cast<unsigned>(where % format::kMaxPlaces));
    edit({current_.number, MDFS_KIND_EXTENT_RUNS, where}, EraseItem{});
  }
  const std::uint64_t stored = current_.stored_blocks * block_size_;
  const bool goes = inode.links == 0 && table_.orphans.contains(current_.number);  // some of it may have gone already
  if (stored == inode.stored_bytes || goes) return;
  report(FindingId::kStoredBytes,
         fmt::format("object {}: {} recorded, {} found", current_.number, inode.stored_bytes, stored),
         {current_.number});
  edits_.inodes[current_.number].stored_bytes = stored;
}

void ItemChecker::finish() {
  if (!secret_passed_) secret_is_lost();
  finish_object();
  current_ = {};
}

}  // namespace mdfs::store
