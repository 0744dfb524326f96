// Pieces of data, taken out of the tree.
// SPDX-License-Identifier: Apache-2.0
#include "volume/piece_collector.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/log.h"
#include "format/cell_copies.h"
#include "format/cell_parts.h"
#include "format/extent_copies.h"
#include "format/file_cell.h"
#include "format/geometry_item.h"
#include "format/strip.h"
#include "volume/records.h"

namespace mdfs::volume {
namespace {

constexpr std::size_t kItemsOfPieces = 128;

format::Key after(const format::Key& key) {
  if (key.offset != UINT64_MAX) return {key.object, key.kind, key.offset + 1};
  if (key.kind != UINT64_MAX) return {key.object, key.kind + 1, 0};
  return {key.object + 1, 0, 0};
}

// Of one that is not the smallest.
format::Key before(const format::Key& key) {
  if (key.offset > 0) return {key.object, key.kind, key.offset - 1};
  if (key.kind > 0) return {key.object, key.kind - 1, UINT64_MAX};
  return {key.object - 1, UINT64_MAX, UINT64_MAX};
}

bool same(const StoredPiece& a, const StoredPiece& b) {
  const format::StoredExtent &one = a, &other = b;
  return one == other;
}

}  // namespace

Result<std::optional<format::ExtentTableShape>> PieceCollector::shape_of(std::uint64_t object) {
  if (shape_object_ == object && shape_) return shape_;
  MDFS_TRY_ASSIGN(const auto item, store_.get(geometry_key(object)));
  if (!item) return std::optional<format::ExtentTableShape>();  // deleted meanwhile
  MDFS_TRY_ASSIGN(const geometry::Geometry geometry, read_geometry(store_, object));
  shape_object_ = object;
  shape_ = format::table_shape(geometry);
  return shape_;
}

Status PieceCollector::take_extents(const store::Item& item, std::vector<StoredPiece>& pieces) {
  MDFS_TRY_ASSIGN(const auto shape, shape_of(item.key.object));
  if (!shape) return {};
  MDFS_TRY_ASSIGN(const format::ExtentPage page, format::ExtentPage::decode(item.value, *shape));
  format::CopyPage copies;
  if ((store_.features_ro_compat() & MDFS_RO_COMPAT_PROTECTION) != 0) {
    MDFS_TRY_ASSIGN(const auto value, store_.get(format::copies_key(item.key)));
    if (value) {
      MDFS_TRY_ASSIGN(copies, format::CopyPage::decode(*value, *shape));
    }
  }
  if (copies_apart_) {
    for (const format::ParityGroup& group : copies.groups()) {
      const std::uint64_t where = item.key.offset * format::kMaxPlaces + group.lowest();
      if (auto parity = group.stored_parity(page, store_.block_size()))
        pieces.push_back({{std::move(*parity), item.key.object, where, true, true}, {}});
    }
  }
  for (unsigned place = 0; place < shape->places(); ++place) {
    MDFS_TRY_ASSIGN(auto extent, format::read_pieces(store_, item.key, page, &copies, place, store_.block_size()));
    if (!extent || !extent->is_stored()) continue;  // a hole, or moved meanwhile
    const std::uint64_t where = item.key.offset * format::kMaxPlaces + place;
    if (extent->has_copy() && copies_apart_)
      pieces.push_back({{extent->by_copy(), item.key.object, where, true, true}, {}});
    pieces.push_back({{std::move(*extent), item.key.object, where, true}, {}});
  }
  return {};
}

Status PieceCollector::take_cell(const store::Item& item, std::vector<StoredPiece>& pieces) const {
  const std::uint32_t block_size = store_.block_size();
  const bool may_have_copies = (store_.features_ro_compat() & MDFS_RO_COMPAT_PROTECTION) != 0;
  MDFS_TRY_ASSIGN(const format::CellPieces cell,
                  format::cell_with_copies(store_, item.key, item.value, block_size, may_have_copies));
  const auto take_parts = [&](const format::FileCell& of, const format::FileCell& other, bool is_copy) {
    for (format::CellPart& part : format::cell_parts(of, other, block_size)) {
      const std::uint64_t first_byte = item.key.offset * MDFS_FILE_CELL + std::uint64_t{part.first} * block_size;
      pieces.push_back({{std::move(part.bytes), item.key.object, first_byte, false, is_copy}, {}});
    }
  };
  take_parts(cell.first, cell.copy, false);
  if (copies_apart_) take_parts(cell.copy, cell.first, true);
  return {};
}

Status PieceCollector::take_strip(const store::Item& item, std::vector<StoredPiece>& pieces) {
  const std::uint32_t block_size = store_.block_size();
  MDFS_TRY_ASSIGN(const auto shape, shape_of(item.key.object));
  if (!shape) return {};
  MDFS_TRY_ASSIGN(const format::Strip strip, format::decode_strip(item.value, *shape, block_size));
  for (unsigned place = 0; place < shape->places(); ++place) {
    const std::uint64_t where = item.key.offset / MDFS_STRIPS_PER_PAGE * format::kMaxPlaces + place;
    if (!strip.has(place)) continue;
    format::StoredExtent part = strip.stored_part(place, block_size);
    if (part.has_copy() && copies_apart_)
      pieces.push_back({{part.by_copy(), item.key.object, where, true, true}, item.key.offset});
    pieces.push_back({{std::move(part), item.key.object, where, true}, item.key.offset});
  }
  return {};
}

void PieceCollector::take(const std::vector<store::Item>& items, std::vector<StoredPiece>& pieces,
                          format::OperationRecord& record) {
  for (const store::Item& item : items) {
    Status status;
    if (item.key.kind == MDFS_KIND_EXTENTS) status = take_extents(item, pieces);
    if (item.key.kind == MDFS_KIND_FILE_CELL) status = take_cell(item, pieces);
    if (item.key.kind == MDFS_KIND_STRIP) status = take_strip(item, pieces);
    if (status.ok()) continue;
    spdlog::error("scrub: item ({}, {}, {}): {}; run mdfsck", item.key.object, item.key.kind, item.key.offset,
                  status.error().message());
    record.note_error({item.key.object, item.key.offset, 0, 0, MDFS_ERROR_SKIPPED});
  }
}

bool PieceCollector::collect(format::Key& next, std::vector<StoredPiece>& pieces, format::OperationRecord& record) {
  const auto items = store_.scan(next, format::kMaxKey, kItemsOfPieces);
  if (items.ok()) {
    take(*items, pieces, record);
    if (items->size() < kItemsOfPieces) return false;
    next = after(items->back().key);
    return true;
  }
  // One of the leaves cannot be read, which the look at the nodes has named. Leaf by leaf, then, until it is behind us.
  const std::optional<format::Key> behind = verifier_.next_leaf(next);
  const auto leaf = store_.scan(next, behind ? before(*behind) : format::kMaxKey, SIZE_MAX);
  if (leaf.ok()) {
    take(*leaf, pieces, record);
  } else {
    spdlog::error("scrub: the tree from ({}, {}, {}) on cannot be read: {}", next.object, next.kind, next.offset,
                  leaf.error().message());
    record.note_error({next.object, next.offset, 0, 0, MDFS_ERROR_SKIPPED});
  }
  if (behind) next = *behind;
  return behind.has_value();
}

bool PieceCollector::is_current(const StoredPiece& piece) {
  std::vector<StoredPiece> now;
  const std::uint64_t kind = piece.is_extent ? MDFS_KIND_EXTENTS : MDFS_KIND_FILE_CELL;
  const std::uint64_t offset = piece.is_extent ? piece.where / format::kMaxPlaces : piece.where / MDFS_FILE_CELL;
  format::Key key{piece.object, kind, offset};
  if (piece.strip) key = {piece.object, MDFS_KIND_STRIP, *piece.strip};
  const auto value = store_.get(key);
  if (!value.ok()) return true;
  if (!*value) return false;
  const store::Item item{key, **value};
  const Status status = piece.strip       ? take_strip(item, now)
                        : piece.is_extent ? take_extents(item, now)
                                          : take_cell(item, now);
  if (!status.ok()) return true;
  return std::any_of(now.begin(), now.end(),
                     [&](const StoredPiece& other) { return other.where == piece.where && same(piece, other); });
}

}  // namespace mdfs::volume
