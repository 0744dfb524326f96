// Boxes and groups of extents with one parity.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/parity_box.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace mdfs::geometry {
namespace {

// Of a place in a page.
Coord coord_of(unsigned rank, const PageBox& page, unsigned place) {
  Coord coord{};
  for (unsigned axis = rank; axis-- > 0;) {
    coord[axis] = place % page.side[axis];
    place = static_cast<unsigned>(place / page.side[axis]);
  }
  return coord;
}

}  // namespace

unsigned most_group_members(unsigned width, std::uint64_t extent_bytes, unsigned disks) {
  const auto by_size = static_cast<unsigned>(std::max<std::uint64_t>(1, kMostGroupBytes / extent_bytes));
  return std::min({width, by_size, disks > 1 ? disks - 1 : 1, kMostParityWidth});
}

Coord parity_box(unsigned rank, const Coord& grid, const PageBox& page, unsigned width) {
  MDFS_CHECK(std::has_single_bit(width) && rank >= 1);
  Coord box{};
  for (unsigned axis = 0; axis < rank; ++axis) box[axis] = 1;
  const auto has_room = [&](unsigned axis) {
    return 2 * box[axis] <= page.side[axis] && box[axis] < std::max<std::uint64_t>(1, grid[axis]);
  };
  for (unsigned extents = 1; extents < width; extents *= 2) {
    unsigned best = rank;
    if (has_room(rank - 1)) best = rank - 1;
    if (rank >= 2 && has_room(rank - 2) && (best == rank || box[rank - 2] < box[rank - 1])) best = rank - 2;
    for (unsigned axis = rank; axis-- > 0 && best == rank;)
      if (has_room(axis)) best = axis;
    if (best == rank) break;
    box[best] *= 2;
  }
  return box;
}

std::uint64_t places_of_box(unsigned rank, const PageBox& page, const Coord& box, unsigned place) {
  MDFS_CHECK(place < page.places);
  const Coord at = coord_of(rank, page, place);
  std::uint64_t places = 0;
  for (unsigned other = 0; other < page.places; ++other) {
    const Coord coord = coord_of(rank, page, other);
    bool inside = true;
    for (unsigned axis = 0; axis < rank; ++axis) inside = inside && coord[axis] / box[axis] == at[axis] / box[axis];
    if (inside) places |= std::uint64_t{1} << other;
  }
  return places;
}

std::vector<std::uint64_t> parity_groups(std::span<const ExtentOnDisks> extents, unsigned most) {
  const auto crowd = [&](const ExtentOnDisks& extent) {
    return std::count_if(extents.begin(), extents.end(),
                         [&](const ExtentOnDisks& other) { return (other.disks & extent.disks) != 0; });
  };
  std::vector<const ExtentOnDisks*> order;
  for (const ExtentOnDisks& extent : extents) order.push_back(&extent);
  std::stable_sort(order.begin(), order.end(), [&](const auto* a, const auto* b) { return crowd(*a) > crowd(*b); });
  struct Group {
    std::uint64_t places = 0, disks = 0;
    unsigned count = 0;
    bool closed = false;
  };
  std::vector<Group> groups;
  for (const ExtentOnDisks* const extent : order) {
    MDFS_CHECK(extent->place < 64);
    const std::uint64_t bit = std::uint64_t{1} << extent->place;
    const bool alone = extent->disks == 0 || most < 2;
    // The smallest group that takes it, so that none is left with one extent.
    Group* best = nullptr;
    for (Group& group : groups)
      if (!alone && !group.closed && group.count < most && (group.disks & extent->disks) == 0 &&
          (best == nullptr || group.count < best->count))
        best = &group;
    if (best == nullptr) best = &groups.emplace_back(Group{.closed = alone});
    best->places |= bit;
    best->disks |= extent->disks;
    ++best->count;
  }
  std::vector<std::uint64_t> places;
  for (const Group& group : groups) places.push_back(group.places);
  std::sort(places.begin(), places.end(),
            [](std::uint64_t a, std::uint64_t b) { return std::countr_zero(a) < std::countr_zero(b); });
  return places;
}

}  // namespace mdfs::geometry
