// Which extents of an image have been written; all others are holes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "engine/core.h"

namespace mdfs::engine {

// Stored, in strips or dirty. Any thread; what changes meanwhile is seen or not.
class WrittenExtents {
 public:
  using Visit = std::function<Result<bool>(const geometry::Coord&)>;

  WrittenExtents(Core& core, OpenObject& object) : core_(core), object_(object) {}

  Result<bool> contains(const geometry::Coord& extent) const;
  // Lists the first written extents, at most `most`, ascending, from `from` on in its row of the grid along the fastest
  // axis. Fewer: the row has no more. Holds some items of the tree and the answer.
  Result<std::vector<std::uint64_t>> in_row(const geometry::Coord& from, std::size_t most, const Stop& stop) const;
  // Calls visit(extent) for those in a box of the grid, in any order, until it returns false. The cost depends on
  // written extents near the box, not on its size. `visit` may change them; one that changes meanwhile may be visited
  // twice.
  Status each_in(const GridBox& box, const Stop& stop, const Visit& visit) const;
  // The same for extents that have records or strips. A dirty extent may be among them.
  Status each_stored_in(const GridBox& box, const Stop& stop, const Visit& visit) const;
  Result<std::uint64_t> count_stored(const Stop& stop) const;

 private:
  static constexpr std::size_t kItemsAtOnce = 16;
  static constexpr std::uint64_t kFewInBox = 16;  // that are looked up one by one, in cached pages
  // Indices along the fastest axis, of which no more than the first `most` are needed.
  using Found = std::set<std::uint64_t>;

  Result<bool> visit_dirty(const GridBox& box, const Visit& visit) const;
  void add_place(const geometry::Coord& from, const geometry::PagePlace& place, Found& found) const;
  void add_dirty(const geometry::Coord& from, std::size_t most, Found& found) const;
  Status add_strips(const geometry::Coord& from, std::size_t most, const Stop& stop, Found& found) const;
  Status add_stored(const geometry::Coord& from, std::size_t most, const Stop& stop, Found& found) const;
  geometry::Coord end_of_row(const geometry::Coord& from) const;

  Core& core_;
  OpenObject& object_;
};

}  // namespace mdfs::engine
