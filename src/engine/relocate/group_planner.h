// What there is of parity groups, and what there should be.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engine/map/extent_map.h"
#include "engine/relocate/protection.h"
#include "geometry/geometry.h"

namespace mdfs::engine {

class OpenObject;
struct Core;
struct GroupUnit;

// Looks up the extents of a unit, and decides what they are to have. Reads the tree, and no data. Any thread.
class GroupPlanner {
 public:
  explicit GroupPlanner(Core& core) : core_(core) {}

  // Extents of the object that may share a parity: `width` at most, fewer if they are large, or disks few.
  unsigned most_members(const OpenObject& object, unsigned width) const;
  // The box of a place, of at most `width` extents, with all groups that have places of it, and so on.
  std::uint64_t places_of_unit(const OpenObject& object, const KnownPage& known, unsigned place, unsigned width) const;
  // The stored extents at these places of a page.
  Result<GroupUnit> look_up(const OpenObject& object, std::uint64_t page, const KnownPage& known, std::uint64_t places,
                            const ProtectRequest& wanted) const;
  // Of a unit that was looked up, or in which more pieces have turned out to be bad: the pieces to be made.
  void plan(const OpenObject& object, GroupUnit& unit, const ProtectRequest& wanted) const;
  // Of a unit that was planned: there is nothing to be made.
  static bool is_as_wanted(const GroupUnit& unit, const ProtectRequest& wanted);
  // The stored extents of a page whose units are not as wanted.
  Result<std::vector<geometry::Coord>> find(const OpenObject& object, std::uint64_t page, const KnownPage& known,
                                            const ProtectRequest& wanted) const;

 private:
  void choose_disks(const OpenObject& object, std::uint64_t gone, GroupUnit& unit) const;

  Core& core_;
};

}  // namespace mdfs::engine
