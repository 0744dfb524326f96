// The changes of a repair, made item by item while the tree is written anew.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "format/cell_copies.h"
#include "format/dirent.h"
#include "format/extent_copies.h"
#include "format/file_cell.h"
#include "format/geometry_item.h"
#include "format/inode.h"
#include "format/strip.h"
#include "store/check/edits.h"
#include "store/check/tree_rewrite.h"

namespace mdfs::store {
namespace {

using format::Key;
using format::LeafItem;

Result<ByteVector> fix_inode(const ByteVector& value, const InodeFix& fix) {
  MDFS_TRY_ASSIGN(format::Inode inode, format::decode_inode(value));
  inode.links = fix.links.value_or(inode.links);
  inode.parent = fix.parent.value_or(inode.parent);
  inode.entries = fix.entries.value_or(inode.entries);
  inode.stored_bytes = fix.stored_bytes.value_or(inode.stored_bytes);
  inode.reach = fix.reach.value_or(inode.reach);
  return format::encode(inode);
}

}  // namespace

Result<std::vector<LeafItem>> TreeRewriter::edited(const NodeRef& leaf, const Edits& edits) {
  std::vector<LeafItem> old;
  if (!leaf.lost) {
    std::vector<LoadedNode> loaded = loader_.load({&leaf, 1});
    if (!loaded[0].node) return Error{Errc::kCorrupt, "a leaf could not be read again: " + loaded[0].why};
    old = std::move(loaded[0].node->items);
  }
  std::map<Key, ByteVector> kept;
  for (LeafItem& item : old) {
    if (edits.erased_objects.contains(item.key.object)) continue;
    if (const auto edit = edits.items.find(item.key); edit != edits.items.end()) {
      if (std::holds_alternative<PutItem>(edit->second)) continue;  // put below
      MDFS_TRY_ASSIGN(auto value, apply(item.key, item.value, edit->second));
      if (value) kept[item.key] = std::move(*value);
      continue;
    }
    const auto fix = edits.inodes.find(item.key.object);
    if (fix != edits.inodes.end() && item.key == Key{item.key.object, MDFS_KIND_INODE, 0}) {
      MDFS_TRY_ASSIGN(item.value, fix_inode(item.value, fix->second));
    }
    kept[item.key] = std::move(item.value);
  }
  for (auto edit = edits.items.lower_bound(leaf.lower); edit != edits.items.end() && edit->first <= leaf.upper; ++edit)
    if (const auto* put = std::get_if<PutItem>(&edit->second)) kept[edit->first] = put->value;
  std::vector<LeafItem> items;
  for (auto& [key, value] : kept) items.push_back({key, std::move(value)});
  return items;
}

Result<std::optional<ByteVector>> TreeRewriter::apply(const Key& key, const ByteVector& value, const ItemEdit& edit) {
  if (std::holds_alternative<EraseItem>(edit)) return std::optional<ByteVector>();
  if (const auto* type = std::get_if<FixType>(&edit)) {
    MDFS_TRY_ASSIGN(format::Dirent entry, format::decode_dirent(value));
    entry.type = type->type;
    return std::optional(format::encode(entry));
  }
  if (const auto* shape = std::get_if<FixShape>(&edit)) {
    MDFS_TRY_ASSIGN(geometry::Geometry geometry, format::decode_geometry(value));
    geometry.shape[0] = shape->shape0;
    return std::optional(format::encode_over(geometry, value));
  }
  const auto& records = std::get<FixRecords>(edit);
  if (key.kind == MDFS_KIND_STRIP) return fix_strip(value, records);
  if (key.kind == MDFS_KIND_PARITY) return fix_copies(value, records);
  if (key.kind == MDFS_KIND_FILE_PARITY) return fix_cell_copies(value, records);
  return key.kind == MDFS_KIND_EXTENTS ? fix_extents(value, records) : fix_cell(value, records);
}

Result<std::optional<ByteVector>> TreeRewriter::fix_extents(const ByteVector& value, const FixRecords& fix) {
  MDFS_TRY_ASSIGN(format::ExtentPage page, format::ExtentPage::decode(value, *fix.shape));
  for (const auto& [place, runs] : fix.move) {
    auto record = page.get(place);
    if (!record || fix.erase.contains(place)) continue;
    MDFS_TRY_ASSIGN(const format::Address to, copy_blocks(runs));
    record->address = to.packed();
    record->birth = generation_;
    page.set(place, *record);
  }
  for (const unsigned place : fix.erase) page.erase(place);
  if (page.empty()) return std::optional<ByteVector>();
  return std::optional(page.encode());
}

// A copy or parity whose blocks belong to another owner is given up: the extents themselves stay.
Result<std::optional<ByteVector>> TreeRewriter::fix_copies(const ByteVector& value, const FixRecords& fix) {
  MDFS_TRY_ASSIGN(format::CopyPage page, format::CopyPage::decode(value, *fix.shape));
  const auto erase = [&](unsigned place) {
    page.erase(place);
    page.erase_group(place);
  };
  for (const unsigned place : fix.erase) erase(place);
  for (const auto& [place, runs] : fix.move) erase(place);
  if (page.empty()) return std::optional<ByteVector>();
  return std::optional(page.encode(*fix.shape));
}

// Its parts lie together: if one has to move, all do.
Result<std::optional<ByteVector>> TreeRewriter::fix_strip(const ByteVector& value, const FixRecords& fix) {
  const std::uint32_t block_size = volume_.label.block_size;
  MDFS_TRY_ASSIGN(format::Strip strip, format::decode_strip(value, *fix.shape, block_size));
  for (const unsigned part : fix.erase)
    if (part < format::kMaxPlaces) strip.live &= ~(std::uint64_t{1} << part);
  if (strip.live == 0) return std::optional<ByteVector>();
  // The copy goes if any part of it has no blocks of its own, or if the parts move.
  const bool copy_is_bad = !fix.move.empty() || std::any_of(fix.erase.begin(), fix.erase.end(),
                                                            [](unsigned part) { return part >= format::kMaxPlaces; });
  if (copy_is_bad) strip.copy.reset();
  if (std::none_of(fix.move.begin(), fix.move.end(), [&](const auto& move) { return strip.has(move.first); }))
    return std::optional(format::encode(strip));
  format::Strip moved = strip;
  moved.places = strip.live;
  moved.birth = generation_;
  moved.crc32c.clear();
  format::Runs runs;
  for (unsigned place = 0; place < format::kMaxPlaces; ++place) {
    if (!strip.has(place)) continue;
    const auto checksums = strip.part_checksums(place, block_size);
    moved.crc32c.insert(moved.crc32c.end(), checksums.begin(), checksums.end());
    runs.push_back(strip.part(place, block_size));
  }
  MDFS_TRY_ASSIGN(moved.address, copy_blocks(runs));
  return std::optional(format::encode(moved));
}

Result<std::optional<ByteVector>> TreeRewriter::fix_cell(const ByteVector& value, const FixRecords& fix) {
  const std::uint32_t block_size = volume_.label.block_size;
  MDFS_TRY_ASSIGN(const format::FileCell old, format::decode_file_cell(value, block_size));
  format::FileCell cell;
  for (unsigned i = 0; i < old.runs.size(); ++i) {
    if (fix.erase.contains(i)) continue;
    format::FileRun run = old.runs[i];
    if (const auto move = fix.move.find(i); move != fix.move.end()) {
      MDFS_TRY_ASSIGN(run.address, copy_blocks(move->second));
      run.birth = generation_;
    }
    cell.runs.push_back(std::move(run));
  }
  if (fix.end_block) (void)cell.punch(*fix.end_block, format::cell_blocks(block_size) - *fix.end_block);
  if (cell.empty()) return std::optional<ByteVector>();
  return std::optional(format::encode(cell));
}

// A copy whose blocks belong to another owner is given up: the block of the cell itself stays.
Result<std::optional<ByteVector>> TreeRewriter::fix_cell_copies(const ByteVector& value, const FixRecords& fix) {
  const std::uint32_t block_size = volume_.label.block_size;
  format::CellPieces pieces;
  MDFS_TRY(format::decode_cell_copies(value, block_size, pieces));
  const std::vector<format::FileRun> runs = std::exchange(pieces.copy.runs, {});
  for (unsigned i = 0; i < runs.size(); ++i)
    if (!fix.erase.contains(i) && !fix.move.contains(i)) pieces.copy.runs.push_back(runs[i]);
  for (unsigned block = 0; block < format::cell_blocks(block_size); ++block) {
    const bool erased = (fix.erase_copies >> block & 1) != 0;
    if (erased || (fix.end_block && block >= *fix.end_block)) (void)pieces.copy.punch(block, 1);
  }
  if (!pieces.has_copies()) return std::optional<ByteVector>();
  return std::optional(format::encode_cell_copies(pieces));
}

}  // namespace mdfs::store
