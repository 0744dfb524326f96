// What a mount makes of each box that has lost pieces.
// SPDX-License-Identifier: Apache-2.0
#include "sim/parity_rebuild.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/background_pace.h"
#include "base/check.h"
#include "base/checked.h"
#include "geometry/parity_box.h"
#include "geometry/piece_disks.h"
#include "sim/parity_layout.h"

namespace mdfs::sim {
namespace {

std::uint64_t bit(unsigned number) { return std::uint64_t{1} << number; }

struct Place {
  unsigned disk = 0;
  std::uint64_t offset = 0;
};

// An extent of a unit: what it has, and what is to become of it.
struct Member {
  ParityUnit::Extent extent;
  Place first;
  std::optional<Place> copy;
  std::size_t group = 0;  // of the layout
  bool by_copy = false, makes_first = false, makes_copy = false, drops_copy = false, reads = false;
  unsigned disk = 0;  // that gets the new first piece

  unsigned disk_then() const { return makes_first ? disk : by_copy ? copy->disk : first.disk; }
};
struct OldGroup {
  std::size_t number = 0;  // of the layout
  std::uint64_t members = 0;
  Place parity;
  bool is_bad = false;
};
struct Unit {
  std::vector<Member> members;
  std::vector<OldGroup> groups;     // of several members
  std::vector<std::uint64_t> made;  // groups that get a new parity
  std::uint64_t kept = 0;           // places of groups that stay

  const OldGroup* group_of(const Member& member) const {
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const OldGroup& group) {
      return (group.members & bit(member.extent.place)) != 0;
    });
    return found == groups.end() ? nullptr : &*found;
  }
};

class ParityPlanner {
 public:
  explicit ParityPlanner(const System& system)
      : system_(system),
        layout_(system.parities()),
        lost_(*system.setup().lost_disk),
        step_(system.step_bytes()),
        room_(system.setup().disks),
        new_firsts_(system.setup().disks),
        new_others_(system.setup().disks),
        before_(ceil_div(layout_.extents(), std::uint64_t{system.setup().disks}) * 2) {
    plan_.disks.resize(system.setup().disks);
  }

  RebuildPlan plan() {
    count_stored();
    std::uint64_t page = 0;
    std::size_t found = 0;  // extents of the step
    layout_.each_unit([&](const ParityUnit& one) {
      if (one.page != page && found >= kRebuildExtents) {
        end_step();
        found = 0;
      }
      page = one.page;
      Unit unit = look_up(one);
      if (!loses(unit)) return;
      found += unit.members.size();
      decide(unit);
      for (const Member& member : unit.members) bytes_ += member.reads ? step_ : 0;
      batch_.push_back(std::move(unit));
      if (bytes_ >= kRebuildPieceBytes) end_piece();
    });
    end_step();
    plan_.bytes = plan_.extents * step_;
    return std::move(plan_);
  }

 private:
  std::uint64_t gone() const { return bit(lost_); }
  Place place_of_parity(const ParityLayout::Group& group) const {
    return {group.disk, system_.offset_of_parity(group)};
  }

  void count_stored() {
    layout_.each_unit([&](const ParityUnit& unit) {
      for (const ParityUnit::Extent& extent : unit.extents) room_.take(layout_.disk_of(extent.coord));
    });
    for (std::size_t i = 0; i < layout_.groups(); ++i) room_.take(layout_.group(i).disk);
  }

  Unit look_up(const ParityUnit& one) {
    Unit unit;
    for (const ParityUnit::Extent& extent : one.extents) {
      Member& member = unit.members.emplace_back();
      member.extent = extent;
      member.first = {layout_.disk_of(extent.coord), system_.layout().offset_of(extent.number)};
      member.group = layout_.group_of(extent.number);
      const ParityLayout::Group group = layout_.group(member.group);
      if (group.is_copy()) {
        member.copy = place_of_parity(group);
        member.by_copy = member.first.disk == lost_;
        member.drops_copy = member.by_copy || member.copy->disk == lost_;
        continue;
      }
      member.makes_first = member.first.disk == lost_;
      auto known = std::find_if(unit.groups.begin(), unit.groups.end(),
                                [&](const OldGroup& old) { return old.number == member.group; });
      if (known == unit.groups.end())
        known = unit.groups.insert(known, {member.group, 0, place_of_parity(group), group.disk == lost_});
      known->members |= bit(extent.place);
    }
    return unit;
  }

  // Counts the pieces that are lost.
  bool loses(const Unit& unit) {
    const std::uint64_t before = plan_.extents;
    for (const Member& member : unit.members) plan_.extents += member.makes_first || member.drops_copy ? 1 : 0;
    for (const OldGroup& group : unit.groups) plan_.extents += group.is_bad ? 1 : 0;
    return plan_.extents > before;
  }

  // Where the other pieces of a member lie.
  std::uint64_t other_disks(const Unit& unit, const Member& member) const {
    std::uint64_t disks = 0;
    const OldGroup* const group = unit.group_of(member);
    if (group == nullptr) return bit(member.copy->disk);
    for (const Member& other : unit.members)
      if (other.group == member.group && &other != &member) disks |= bit(other.first.disk);
    return disks | bit(group->parity.disk);
  }

  void choose_disks(Unit& unit) const {
    std::uint64_t taken = gone();
    for (const Member& member : unit.members)
      if (!member.makes_first) taken |= bit(member.disk_then());
    for (Member& member : unit.members) {
      if (!member.makes_first) continue;
      for (const std::uint64_t avoided : {taken | other_disks(unit, member), taken, gone()}) {
        const auto disks = geometry::disks_by_room(avoided, room_.of_disks());
        if (disks.empty()) continue;
        member.disk = disks.front();
        break;
      }
      taken |= bit(member.disk);
    }
  }

  void decide(Unit& unit) const {
    choose_disks(unit);
    const unsigned most = std::min(layout_.most_members(), std::max(1u, system_.setup().disks - 2));
    std::vector<geometry::ExtentOnDisks> extents;
    for (const Member& member : unit.members) extents.push_back({member.extent.place, bit(member.disk_then())});
    std::uint64_t grouped = 0;
    for (const std::uint64_t members : geometry::parity_groups(extents, most)) {
      if (std::has_single_bit(members)) continue;
      grouped |= members;
      const auto same = std::find_if(unit.groups.begin(), unit.groups.end(),
                                     [&](const OldGroup& group) { return group.members == members; });
      bool stays = same != unit.groups.end() && !same->is_bad;
      for (const Member& member : unit.members)
        stays = stays && ((members & bit(member.extent.place)) == 0 || member.disk_then() != same->parity.disk);
      if (stays)
        unit.kept |= members;
      else
        unit.made.push_back(members);
    }
    for (Member& member : unit.members) {
      const bool in_group = (grouped & bit(member.extent.place)) != 0;
      member.makes_copy = !in_group && (!member.copy || member.drops_copy);
      member.drops_copy = member.copy && (member.drops_copy || in_group);
      const bool gets_parity = in_group && (unit.kept & bit(member.extent.place)) == 0;
      member.reads = member.makes_first || member.makes_copy || gets_parity;
    }
  }

  void read(const Unit& unit, std::vector<geometry::PlanPart>& reads) const {
    const auto add = [&](const Place& place) { reads.push_back({place.disk, place.offset, step_}); };
    for (const Member& member : unit.members) {
      if (!member.reads) continue;
      if (!member.makes_first) {
        add(member.by_copy ? *member.copy : member.first);
        continue;
      }
      for (const Member& other : unit.members)
        if (other.group == member.group && &other != &member) add(other.first);
      add(unit.group_of(member)->parity);
    }
  }

  // Of the pieces in the group that the member will be in, without its own.
  std::uint64_t disks_beside(const Unit& unit, const Member& member) const {
    std::uint64_t members = bit(member.extent.place);
    for (const std::uint64_t made : unit.made)
      if ((made & members) != 0) members = made;
    std::uint64_t disks = 0;
    if (const OldGroup* const old = unit.group_of(member); old != nullptr && (unit.kept & old->members) != 0) {
      members = old->members;
      disks |= bit(old->parity.disk);
    }
    for (const Member& other : unit.members)
      if (&other != &member && (members & bit(other.extent.place)) != 0) disks |= bit(other.disk_then());
    if (member.copy && !member.drops_copy) disks |= bit(member.copy->disk);
    return disks;
  }

  void place(Unit& unit, std::vector<geometry::PlanPart>& writes) {
    const std::vector<std::uint64_t> free = room_.of_disks();  // as it was before the unit
    const auto write = [&](std::uint64_t taken, unsigned wanted, bool is_first) {
      const auto disks = geometry::disks_by_room(taken, free, wanted);
      MDFS_CHECK(!disks.empty());
      const unsigned disk = disks.front();
      room_.take(disk);
      // Behind all pieces of the image; first pieces and others are allocated apart.
      const std::uint64_t rank = is_first ? 3 * before_ + new_firsts_[disk]++ : 4 * before_ + new_others_[disk]++;
      writes.push_back({disk, system_.layout().offset_of_rank(rank), step_});
      return disk;
    };
    for (Member& member : unit.members)
      if (member.makes_first) member.disk = write(gone() | disks_beside(unit, member), member.disk, true);
    for (const Member& member : unit.members)
      if (member.makes_copy) write(gone() | bit(member.disk_then()), layout_.copy_disk_of(member.extent.coord), false);
    for (const std::uint64_t members : unit.made) {
      std::uint64_t taken = gone();
      const Member* lowest = nullptr;
      for (const Member& member : unit.members) {
        if ((members & bit(member.extent.place)) == 0) continue;
        if (lowest == nullptr) lowest = &member;
        taken |= bit(member.disk_then());
      }
      write(taken, layout_.copy_disk_of(lowest->extent.coord), false);
    }
  }

  // What the unit no longer needs, once it is published.
  void free_old(const Unit& unit) {
    const auto give = [&](unsigned disk) {
      if (disk != lost_) room_.give(disk);
    };
    for (const OldGroup& group : unit.groups)
      if ((group.members & unit.kept) == 0) give(group.parity.disk);
    for (const Member& member : unit.members)
      if (member.copy && member.drops_copy) give(member.by_copy ? member.first.disk : member.copy->disk);
  }

  void end_piece() {
    if (batch_.empty()) return;
    std::vector<geometry::PlanPart> reads, writes;
    for (const Unit& unit : batch_) read(unit, reads);
    for (Unit& unit : batch_) place(unit, writes);
    for (const Unit& unit : batch_) free_old(unit);
    plan_.pieces.push_back(piece_of(system_, reads, writes, plan_.disks));
    plan_.pieces.back().begins_step = begins_step_;
    begins_step_ = false;
    batch_.clear();
    bytes_ = 0;
  }
  void end_step() {
    end_piece();
    begins_step_ = true;
  }

  const System& system_;
  const ParityLayout& layout_;
  const unsigned lost_;
  const std::uint64_t step_;
  FreeRoom room_;
  std::vector<std::uint64_t> new_firsts_, new_others_;  // by disk
  const std::uint64_t before_;                          // extents that a disk holds of the image, at most
  std::vector<Unit> batch_;
  std::uint64_t bytes_ = 0;  // to be read for the batch, as a mount counts them
  bool begins_step_ = true;
  RebuildPlan plan_;
};

}  // namespace

RebuildPlan plan_parity_rebuild(const System& degraded) { return ParityPlanner(degraded).plan(); }

}  // namespace mdfs::sim
