// Which extents of a byte range hold anything.
// SPDX-License-Identifier: Apache-2.0
#include "engine/write/held_extents.h"

#include <algorithm>
#include <set>

#include "base/checked.h"
#include "engine/map/pages_under.h"

namespace mdfs::engine {

namespace {

using geometry::Coord;

constexpr std::size_t kPagesAtOnce = 64;

// The part of a box that lies in one extent; no pieces if there is none.
std::vector<geometry::Piece> piece_in(const OpenObject& object, const geometry::Box& box, const Coord& coord) {
  const Coord& extent = object.array().extent;
  geometry::Box inside;
  for (unsigned axis = 0; axis < object.rank; ++axis) {
    const std::uint64_t begin = std::max(box.start[axis], coord[axis] * extent[axis]);
    const std::uint64_t end = std::min(box.start[axis] + box.length[axis], (coord[axis] + 1) * extent[axis]);
    if (begin >= end) return {};
    inside.start[axis] = begin;
    inside.length[axis] = end - begin;
  }
  return geometry::decompose(object.array(), inside);
}

HeldExtent held_extent(const OpenObject& object, const std::vector<geometry::RangeBox>& boxes, const Coord& coord) {
  HeldExtent held{object.extent_index(coord), coord, {}};
  for (const geometry::RangeBox& range : boxes) {
    const std::vector<geometry::Piece> pieces = piece_in(object, range.box, coord);
    held.pieces.insert(held.pieces.end(), pieces.begin(), pieces.end());
  }
  return held;
}

}  // namespace

Status each_held_extent(Core& core, OpenObject& object, std::uint64_t offset, std::uint64_t length,
                        const StoredPages& stored_pages, const std::function<Status(const HeldExtent&)>& visit) {
  if (length == 0) return {};
  const std::vector<geometry::RangeBox> boxes =
      geometry::range_boxes(object.rank, object.array().shape, offset, length);
  std::set<std::uint64_t> dirty;  // before the records are asked: what is written back meanwhile is in both
  for (const geometry::RangeBox& range : boxes) {
    const GridBox extents = extents_under(object, range.box);
    const std::lock_guard lock(object.state_mutex);
    const auto first = object.dirty_cache_blocks.lower_bound(
        checked_mul(extents.first[0], object.extents_in_row()).value_or(UINT64_MAX));
    for (auto block = first; block != object.dirty_cache_blocks.end(); ++block) {
      const Coord coord = object.extent_coord(block->first);
      if (coord[0] >= extents.last[0]) break;
      if (extents.contains(object.rank, coord)) dirty.insert(block->first);
    }
  }
  for (const std::uint64_t index : dirty) MDFS_TRY(visit(held_extent(object, boxes, object.extent_coord(index))));

  for (std::size_t number = 0; number < boxes.size(); ++number) {
    const GridBox extents = extents_under(object, boxes[number].box);
    const PagesUnder pages(object, extents);
    const auto is_before = [&](const Coord& coord) {  // an earlier box has shown it
      return std::any_of(boxes.begin(), boxes.begin() + static_cast<std::ptrdiff_t>(number),
                         [&](const geometry::RangeBox& range) {
                           return extents_under(object, range.box).contains(object.rank, coord);
                         });
    };
    const std::uint64_t last = pages.last();
    for (std::uint64_t next = pages.first(); next <= last;) {
      MDFS_TRY_ASSIGN(const std::vector<std::uint64_t> stored, stored_pages(next, last, kPagesAtOnce));
      if (stored.empty()) break;
      for (const std::uint64_t page : stored) {
        const std::uint64_t in_box = pages.at_or_after(page);
        next = in_box == page ? page + 1 : in_box;
        if (in_box != page) break;
        MDFS_TRY_ASSIGN(const KnownPage known, core.extent_map.page(object, page, false));
        std::uint64_t live = 0;
        for (const Strips::Entry& entry : *known.strips) live |= entry.live;
        for (unsigned place = 0; place < object.page_box.places; ++place) {
          if (!known.page->has(place) && (live >> place & 1) == 0) continue;
          const Coord coord = object.extent_of({page, place});
          if (!extents.contains(object.rank, coord) || is_before(coord)) continue;
          if (!dirty.contains(object.extent_index(coord))) MDFS_TRY(visit(held_extent(object, boxes, coord)));
        }
      }
    }
  }
  return {};
}

}  // namespace mdfs::engine
