// Pages of the extent table.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/page.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/checked.h"

namespace mdfs::geometry {
namespace {

constexpr unsigned kMaxPagePlaces = 64;
constexpr std::uint32_t kPageBytes = 4096;

Coord page_grid(unsigned rank, const Coord& grid, const PageBox& box) {
  Coord pages{};
  for (unsigned axis = 0; axis < rank; ++axis)
    pages[axis] = std::max<std::uint64_t>(1, ceil_div(grid[axis], box.side[axis]));
  return pages;
}

// The first extent of a page.
Coord page_origin(unsigned rank, const Coord& grid, const PageBox& box, std::uint64_t page) {
  const Coord pages = page_grid(rank, grid, box);
  Coord origin{};
  for (unsigned axis = rank; axis > 1; --axis) {
    origin[axis - 1] = page % pages[axis - 1] * box.side[axis - 1];
    page /= pages[axis - 1];
  }
  origin[0] = page * box.side[0];
  return origin;
}

}  // namespace

PageBox page_box(unsigned rank, std::uint32_t record_bytes) {
  MDFS_CHECK(rank >= 1 && rank <= kMaxRank && record_bytes > 0);
  PageBox box;
  box.places = kMaxPagePlaces;
  while (box.places > 1 && std::uint64_t{box.places} * record_bytes > kPageBytes) box.places /= 2;
  const auto bits = static_cast<unsigned>(std::countr_zero(box.places));
  for (unsigned axis = 0; axis < rank; ++axis) {
    const unsigned extra = rank - 1 - axis < bits % rank ? 1 : 0;  // the fastest axes take the rest
    box.side[axis] = std::uint64_t{1} << (bits / rank + extra);
  }
  return box;
}

PagePlace page_place(unsigned rank, const Coord& grid, const PageBox& box, const Coord& extent) {
  const Coord pages = page_grid(rank, grid, box);
  PagePlace result;
  std::uint64_t place = 0;
  for (unsigned axis = 0; axis < rank; ++axis) {
    MDFS_CHECK(axis == 0 || extent[axis] < grid[axis]);
    result.page = result.page * pages[axis] + extent[axis] / box.side[axis];
    place = place * box.side[axis] + extent[axis] % box.side[axis];
  }
  result.place = static_cast<unsigned>(place);
  return result;
}

Coord extent_at(unsigned rank, const Coord& grid, const PageBox& box, const PagePlace& place) {
  Coord extent = page_origin(rank, grid, box, place.page);
  std::uint64_t rest = place.place;
  for (unsigned axis = rank; axis > 0; --axis) {
    extent[axis - 1] += rest % box.side[axis - 1];
    rest /= box.side[axis - 1];
  }
  return extent;
}

}  // namespace mdfs::geometry
