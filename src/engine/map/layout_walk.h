// Walks the rows of a layout in the order of the tree, holding a few of its pages at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "engine/core.h"
#include "engine/map/layout.h"

namespace mdfs::engine {

// Returns false to end the walk before this row.
using TakeRow = std::function<bool(const layout::ExtentPlace&)>;

// The row of an extent, or a part of one, that lies in these runs; one at least.
layout::ExtentPlace row_of(const geometry::Coord& extent, const format::Runs& runs, std::uint64_t stored_bytes);

// The rows of the item of a page of an extent table; `row` is the place of each.
Status each_extent(Core& core, const OpenObject& object, std::uint64_t page, ConstBytes value, LayoutCursor& at,
                   const TakeRow& take, bool& taking);

// The same of the copies of the page, and of its parities; `row` is kFirstCopyRow and the place, that of the lowest
// member. Then of the blocks that groups keep of members that left them.
Status each_copy(Core& core, const OpenObject& object, std::uint64_t page, ConstBytes value, LayoutCursor& at,
                 const TakeRow& take, bool& taking);

// One walk, on one thread. The tree may change meanwhile; the walk sees each page at one moment.
class LayoutWalk {
 public:
  LayoutWalk(Core& core, OpenObject& object, LayoutOf of, const Stop& stop)
      : core_(core), object_(object), of_(of), stop_(stop) {}

  // Walks from `at` on. Stops when `take` refuses a row, which `at` then names (false), or when no row is left (true).
  Result<bool> run(LayoutCursor& at, const TakeRow& take);

 private:
  static constexpr std::size_t kItemsAtOnce = 16;

  Result<bool> run_cells(LayoutCursor& at, const TakeRow& take);
  bool runs_of_cell(const format::FileCell& cell, std::uint32_t first_row, LayoutCursor& at, const TakeRow& take) const;
  Result<bool> run_pages(LayoutCursor& at, const TakeRow& take);
  // The next page with extents, or with strips, at or after `at`; UINT64_MAX if there is none.
  Result<std::uint64_t> next_of_extents(const LayoutCursor& at);
  Result<std::uint64_t> next_of_strips(const LayoutCursor& at);
  Status strips_of_page(bool copies, LayoutCursor& at, const TakeRow& take, bool& taking);
  Status fetch(const format::Key& from);

  Core& core_;
  OpenObject& object_;
  const LayoutOf of_;
  const Stop& stop_;
  std::vector<store::Item> items_;  // extents, or cells, from the tree
  std::size_t used_ = 0;            // number of them that are done
  bool fetched_all_ = false;
  std::optional<std::uint64_t> strip_page_;  // the next one with strips
};

}  // namespace mdfs::engine
