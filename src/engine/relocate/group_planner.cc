// Looking at parity groups, and planning.
// SPDX-License-Identifier: Apache-2.0
#include "engine/relocate/group_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "engine/core.h"
#include "engine/open_object.h"
#include "engine/relocate/group_unit.h"
#include "geometry/parity_box.h"
#include "geometry/piece_disks.h"

namespace mdfs::engine {
unsigned GroupPlanner::most_members(const OpenObject& object, unsigned width) const {
  return geometry::most_group_members(width, object.extent_bytes, core_.store.data_disks());
}

// ---- what is there

std::uint64_t GroupPlanner::places_of_unit(const OpenObject& object, const KnownPage& known, unsigned place,
                                           unsigned width) const {
  std::uint64_t places = place_bit(place);
  if (width > 1) {
    const geometry::Coord grid = object.shape_for(object.size.load(std::memory_order_acquire)).grid();
    const geometry::Coord box = geometry::parity_box(object.rank, grid, object.page_box, std::bit_floor(width));
    places = geometry::places_of_box(object.rank, object.page_box, box, place);
  }
  if (known.copies == nullptr) return places;
  for (std::uint64_t before = 0; before != places;) {
    before = places;
    for (const format::ParityGroup& group : known.copies->groups())
      if ((group.members & places) != 0) places |= group.members;
  }
  return places;
}

Result<GroupUnit> GroupPlanner::look_up(const OpenObject& object, std::uint64_t page, const KnownPage& known,
                                        std::uint64_t places, const ProtectRequest& wanted) const {
  GroupUnit unit;
  unit.page = page;
  for (unsigned place = 0; place < object.page_box.places; ++place) {
    if ((places & place_bit(place)) == 0) continue;
    MDFS_TRY_ASSIGN(auto from, format::read_pieces(core_.store, page_key(object, page), *known.page, known.copies.get(),
                                                   place, object.block_size));
    if (!from || !from->is_stored()) continue;
    MDFS_TRY(core_.extent_map.check(*from));
    GroupExtent& extent = unit.extents.emplace_back();
    extent.place = place;
    extent.coord = object.extent_of({page, place});
    extent.from = std::move(*from);
  }
  if (known.copies != nullptr)
    for (const format::ParityGroup& group : known.copies->groups())
      if ((group.members & places) != 0) unit.groups.push_back(group);
  const std::uint64_t gone = core_.gone_disks() | wanted.drained_disks;
  for (std::size_t i = 0; i < unit.groups.size(); ++i) {
    const auto parity = unit.groups[i].stored_parity(*known.page, object.block_size);
    if (!parity) return Error{Errc::kCorrupt, fmt::format("copies.group: object {}, page {}", object.number, page)};
    const bool is_gone = (StoredExtent::disks_of(parity->runs) & gone) != 0;
    if (is_gone || !unit.groups[i].leavers.empty() || !parity->pieces_are_apart())
      unit.bad_parities |= place_bit(static_cast<unsigned>(i));
  }
  for (GroupExtent& extent : unit.extents) {
    const std::uint64_t first = StoredExtent::disks_of(extent.from.runs),
                        copy = StoredExtent::disks_of(extent.from.copy);
    const bool bad_copy = extent.from.has_copy() && ((copy & gone) != 0 || (copy & first) != 0);
    extent.by_copy = (first & gone) != 0 && extent.from.has_copy() && !bad_copy;
    extent.makes_first = (first & gone) != 0 && !extent.by_copy;
    extent.drops_copy = bad_copy || extent.by_copy;  // what is then the copy is bad
  }
  return unit;
}

bool GroupPlanner::is_as_wanted(const GroupUnit& unit, const ProtectRequest& wanted) {
  std::size_t now = unit.groups.size();
  if (unit.bad_parities != 0) return false;
  for (const GroupExtent& extent : unit.extents) {
    if (extent.makes_first || extent.by_copy || extent.drops_copy) return false;
    if (!wanted.copies && extent.from.is_protected()) return false;
    if (wanted.copies && !extent.from.is_protected()) return false;
    if (extent.from.has_copy()) ++now;
  }
  if (!wanted.copies) return true;
  if (wanted.width <= 1) return unit.groups.empty();
  return now <= unit.planned_pieces;
}

Result<std::vector<geometry::Coord>> GroupPlanner::find(const OpenObject& object, std::uint64_t page,
                                                        const KnownPage& known, const ProtectRequest& wanted) const {
  std::vector<geometry::Coord> found;
  std::uint64_t seen = 0;
  for (unsigned place = 0; place < object.page_box.places; ++place) {
    if ((seen & place_bit(place)) != 0) continue;
    const std::uint64_t places = places_of_unit(object, known, place, most_members(object, wanted.width));
    seen |= places;
    MDFS_TRY_ASSIGN(GroupUnit unit, look_up(object, page, known, places, wanted));
    plan(object, unit, wanted);
    if (is_as_wanted(unit, wanted)) continue;
    for (const GroupExtent& extent : unit.extents) found.push_back(extent.coord);
  }
  return found;
}

// ---- what is to become of it

// Of extents that are written anew: the placement's, unless another extent of the unit lies there.
void GroupPlanner::choose_disks(const OpenObject& object, std::uint64_t gone, GroupUnit& unit) const {
  std::uint64_t taken = gone;
  for (const GroupExtent& extent : unit.extents)
    if (!extent.makes_first) taken |= StoredExtent::disks_of(extent.runs_now());
  const std::vector<std::uint64_t> free_blocks = core_.store.free_of_disks();
  for (GroupExtent& extent : unit.extents) {
    if (!extent.makes_first) continue;
    const std::uint64_t apart = taken | extent.from.other_disks();
    extent.disk = static_cast<std::uint16_t>(object.placement_disk(extent.coord));
    for (const std::uint64_t avoided : {apart, taken, gone}) {
      if ((avoided >> extent.disk & 1) == 0) break;
      const std::vector<std::uint16_t> disks = geometry::disks_by_room(avoided, free_blocks);
      if (disks.empty() || free_blocks[disks.front()] == 0) continue;
      extent.disk = disks.front();
      break;
    }
    taken |= std::uint64_t{1} << extent.disk;
  }
}

// Groups that stay as they are keep their parities.
void GroupPlanner::plan(const OpenObject& object, GroupUnit& unit, const ProtectRequest& wanted) const {
  const std::uint64_t gone = core_.gone_disks() | wanted.drained_disks;
  choose_disks(object, gone, unit);
  unsigned disks_there = 0;  // that take data
  for (unsigned disk = 0; disk < core_.store.disk_count(); ++disk)
    if ((gone >> disk & 1) == 0 && core_.store.disk_info(disk).weight > 0) ++disks_there;
  const unsigned width = wanted.copies ? most_members(object, wanted.width) : 1;
  const unsigned most = std::min(width, disks_there > 1 ? disks_there - 1 : 1);
  std::vector<geometry::ExtentOnDisks> candidates;
  for (const GroupExtent& extent : unit.extents) {
    const bool contiguous = extent.makes_first || extent.runs_now().size() == 1;
    candidates.push_back({extent.place, contiguous ? extent.disks_then() : 0});
  }
  std::uint64_t grouped = 0, kept = 0;
  unit.planned_pieces = 0;
  for (const std::uint64_t members : geometry::parity_groups(candidates, wanted.copies ? most : 1)) {
    ++unit.planned_pieces;
    if (std::has_single_bit(members)) continue;
    grouped |= members;
    const auto same = std::find_if(unit.groups.begin(), unit.groups.end(),
                                   [&](const format::ParityGroup& group) { return group.members == members; });
    const auto number = static_cast<unsigned>(same - unit.groups.begin());
    bool stays = same != unit.groups.end() && (unit.bad_parities & place_bit(number)) == 0;
    if (stays) {
      const unsigned parity_disk = format::Address::unpack(same->parity.address).disk;
      for (const GroupExtent& extent : unit.extents)
        stays = stays && ((members & place_bit(extent.place)) == 0 || (extent.disks_then() >> parity_disk & 1) == 0);
    }
    if (stays) kept |= members;
    if (!stays) unit.parities.push_back({members, {}, {}});
  }
  unit.dissolved = 0;
  for (const format::ParityGroup& group : unit.groups)
    if ((group.members & kept) == 0) unit.dissolved |= group.members;
  for (GroupExtent& extent : unit.extents) {
    const bool in_group = (grouped & place_bit(extent.place)) != 0;
    const bool has_copy = extent.from.has_copy() && !extent.drops_copy;
    extent.makes_copy = wanted.copies && !in_group && !has_copy;
    extent.drops_copy = extent.from.has_copy() && (extent.drops_copy || in_group || !wanted.copies);
    const bool gets_parity = in_group && (kept & place_bit(extent.place)) == 0;
    extent.needs_bytes = extent.makes_first || extent.makes_copy || gets_parity || wanted.verifies;
  }
}

}  // namespace mdfs::engine
