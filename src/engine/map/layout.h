// Rows of a layout, page by page. A caller keeps a position in the grid between two pages, not a list.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "format/extents.h"
#include "format/parity_group.h"
#include "layout/fragmentation.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

// A position among the rows of a layout. Rows are ordered by the page of the extent table. Within a page the extents
// come first, by their place; then the parts in strips, strip by strip; then the copies of both in the same order. A
// row's position does not depend on other rows or on the blocks of its extent, so that writes and moves between two
// pages of rows neither hide a row nor repeat it.
struct LayoutCursor {
  std::uint64_t page = 0;  // of an ordinary file: the cell
  std::uint32_t row = 0;  // extents: the place; parts: (strip + 1) * kMaxPlaces + place; copies: kFirstCopyRow + place;
                          // parities: that of their lowest members; what left a group: kFirstLeaverRow + that
                          // place * kMostGroupPieces + number; of a file: the run, copies: kFirstCopyRow + run

  bool operator==(const LayoutCursor&) const = default;
};
inline constexpr std::uint32_t kFirstCopyRow = (1 + MDFS_STRIPS_PER_PAGE) * format::kMaxPlaces;
inline constexpr std::uint32_t kFirstLeaverRow = kFirstCopyRow + format::kMaxPlaces;
// Copies of parts: this + strip * kMaxPlaces + place.
inline constexpr std::uint32_t kFirstStripCopyRow = kFirstLeaverRow + format::kMaxPlaces * format::kMostGroupPieces;
inline constexpr std::uint32_t kMostRowsOfPage = kFirstStripCopyRow + MDFS_STRIPS_PER_PAGE * format::kMaxPlaces;

// kPieces: all, and the second copies and parities.
enum class LayoutOf : std::uint8_t { kAll, kExtents, kStrips, kPieces };

struct LayoutRequest {
  LayoutCursor from{};
  std::size_t most = SIZE_MAX;  // rows
  LayoutOf of = LayoutOf::kAll;
};

struct LayoutRows {
  std::vector<layout::ExtentPlace> rows;
  LayoutCursor next;    // of the first row that is left
  bool at_end = false;  // no row is left
};

}  // namespace mdfs::engine
