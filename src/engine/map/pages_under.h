// The pages of the extent table that hold the records of a box of extents. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "engine/locks.h"
#include "engine/open_object.h"

namespace mdfs::engine {

// A box of pages, whose numbers are apart. The box of extents is not empty and lies in the grid.
class PagesUnder {
 public:
  PagesUnder(const OpenObject& object, const GridBox& extents) : object_(object) {
    for (unsigned axis = 0; axis < object.rank; ++axis) {
      first_[axis] = extents.first[axis] / object.page_box.side[axis];
      last_[axis] = ceil_div(extents.last[axis], object.page_box.side[axis]);
    }
  }

  std::uint64_t first() const { return number_of(first_); }
  std::uint64_t last() const {  // itself in the box
    geometry::Coord at{};
    for (unsigned axis = 0; axis < object_.rank; ++axis) at[axis] = last_[axis] - 1;
    return number_of(at);
  }
  // The first page of the box at or after this one, which is not behind the last.
  std::uint64_t at_or_after(std::uint64_t page) const {
    geometry::Coord at = object_.extent_of({page, 0});
    for (unsigned axis = 0; axis < object_.rank; ++axis) at[axis] /= object_.page_box.side[axis];
    for (unsigned axis = 0; axis < object_.rank; ++axis) {
      if (at[axis] >= first_[axis] && at[axis] < last_[axis]) continue;
      if (at[axis] >= last_[axis]) {  // on with the slower axes
        unsigned slower = axis;
        do --slower;
        while (slower > 0 && at[slower] + 1 >= last_[slower]);
        ++at[slower];
        axis = slower;
      } else {
        --axis;
      }
      for (unsigned faster = axis + 1; faster < object_.rank; ++faster) at[faster] = first_[faster];
      break;
    }
    return number_of(at);
  }

 private:
  std::uint64_t number_of(const geometry::Coord& page) const {
    geometry::Coord extent{};
    for (unsigned axis = 0; axis < object_.rank; ++axis) extent[axis] = page[axis] * object_.page_box.side[axis];
    return object_.page_of(extent).page;
  }

  const OpenObject& object_;
  geometry::Coord first_{};
  geometry::Coord last_{};
};

}  // namespace mdfs::engine
