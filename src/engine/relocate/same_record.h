// Comparing what the tree says of an extent or a cell with what it said before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/core.h"
#include "engine/map/extent_map.h"
#include "engine/open_object.h"

namespace mdfs::engine {

// True if the record and the copy of the extent are what they were; `from` may have the two change places. Reader is
// store::Store or store::Transaction.
template <typename Reader>
Result<bool> is_same(Core& core, Reader& reader, const OpenObject& object, const geometry::Coord& coord,
                     const StoredExtent& from) {
  const geometry::PagePlace place = object.page_of(coord);
  const format::Key key = page_key(object, place.page);
  MDFS_TRY_ASSIGN(const auto value, reader.get(key));
  if (!value) return false;
  MDFS_TRY_ASSIGN(const format::ExtentPage page, format::ExtentPage::decode(*value, object.table));
  MDFS_TRY_ASSIGN(const auto copies, core.extent_map.copies_of(reader, object, place.page));
  MDFS_TRY_ASSIGN(const auto now, format::read_pieces(reader, key, page, copies.get(), place.place, object.block_size));
  return now && (*now == from || (now->has_copy() && now->by_copy() == from));
}

// The same of the parity of the group of an extent, and of all its pieces.
template <typename Reader>
Result<bool> is_same_parity(Core& core, Reader& reader, const OpenObject& object, const geometry::Coord& coord,
                            const StoredExtent& from) {
  const geometry::PagePlace place = object.page_of(coord);
  MDFS_TRY_ASSIGN(const auto value, reader.get(page_key(object, place.page)));
  if (!value) return false;
  MDFS_TRY_ASSIGN(const format::ExtentPage page, format::ExtentPage::decode(*value, object.table));
  MDFS_TRY_ASSIGN(const auto copies, core.extent_map.copies_of(reader, object, place.page));
  const format::ParityGroup* const group = copies == nullptr ? nullptr : copies->group_of(place.place);
  if (group == nullptr) return false;
  const auto now = group->stored_parity(page, object.block_size);
  return now && *now == from;
}

// The same of a cell.
template <typename Reader>
Result<bool> is_same(Core& core, Reader& reader, const OpenObject& object, std::uint64_t index,
                     const format::CellPieces& cell) {
  MDFS_TRY_ASSIGN(const format::CellPieces now,
                  format::read_cell(reader, cell_key(object, index), object.block_size, core.extent_map.has_copies()));
  return now == cell;
}

}  // namespace mdfs::engine
