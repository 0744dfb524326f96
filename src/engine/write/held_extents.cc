// Which extents of a byte range hold anything.
// SPDX-License-Identifier: Apache-2.0
#include "engine/write/held_extents.h"

#include <algorithm>
#include <set>

#include "base/checked.h"
#include "engine/map/written_extents.h"

namespace mdfs::engine {

namespace {

using geometry::Coord;

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

std::vector<geometry::Piece> pieces_in(const OpenObject& object, const std::vector<geometry::RangeBox>& boxes,
                                       const Coord& coord) {
  std::vector<geometry::Piece> all;
  for (const geometry::RangeBox& range : boxes) {
    const std::vector<geometry::Piece> pieces = piece_in(object, range.box, coord);
    all.insert(all.end(), pieces.begin(), pieces.end());
  }
  return all;
}

std::vector<geometry::RangeBox> boxes_of(const OpenObject& object, std::uint64_t offset, std::uint64_t length) {
  if (length == 0) return {};
  return geometry::range_boxes(object.rank, object.array().shape, offset, length);
}

Status each_held(Core& core, OpenObject& object, const std::vector<geometry::RangeBox>& boxes,
                 const std::function<Status(const Coord&)>& visit) {
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
  for (const std::uint64_t index : dirty) MDFS_TRY(visit(object.extent_coord(index)));

  const WrittenExtents written(core, object);
  for (std::size_t number = 0; number < boxes.size(); ++number) {
    const GridBox extents = extents_under(object, boxes[number].box);
    const auto is_before = [&](const Coord& coord) {  // an earlier box has shown it
      return std::any_of(boxes.begin(), boxes.begin() + static_cast<std::ptrdiff_t>(number),
                         [&](const geometry::RangeBox& range) {
                           return extents_under(object, range.box).contains(object.rank, coord);
                         });
    };
    const auto visit_once = [&](const Coord& coord) -> Result<bool> {
      if (!is_before(coord) && !dirty.contains(object.extent_index(coord))) MDFS_TRY(visit(coord));
      return true;
    };
    MDFS_TRY(written.each_stored_in(extents, {}, visit_once));
  }
  return {};
}

}  // namespace

Status each_held_extent(Core& core, OpenObject& object, std::uint64_t offset, std::uint64_t length,
                        const std::function<Status(const HeldExtent&)>& visit) {
  const std::vector<geometry::RangeBox> boxes = boxes_of(object, offset, length);
  return each_held(core, object, boxes, [&](const Coord& coord) {
    return visit({object.extent_index(coord), coord, pieces_in(object, boxes, coord)});
  });
}

std::vector<geometry::Piece> pieces_of_extent(const OpenObject& object, std::uint64_t offset, std::uint64_t length,
                                              const Coord& coord) {
  return pieces_in(object, boxes_of(object, offset, length), coord);
}

Status each_held_coord(Core& core, OpenObject& object, std::uint64_t offset, std::uint64_t length,
                       const std::function<Status(const Coord&)>& visit) {
  return each_held(core, object, boxes_of(object, offset, length), visit);
}

}  // namespace mdfs::engine
