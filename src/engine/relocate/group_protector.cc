// Making, repairing and dissolving parity groups.
// SPDX-License-Identifier: Apache-2.0
#include "engine/relocate/group_protector.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "base/background_pace.h"
#include "base/checked.h"
#include "base/crc32c.h"
#include "device/urgency.h"
#include "engine/core.h"
#include "engine/open_object.h"
#include "engine/relocate/group_unit.h"
#include "engine/relocate/place_apart.h"
#include "engine/relocate/read_piece.h"
#include "engine/relocate/same_record.h"
#include "engine/requests.h"
#include "engine/write/publisher.h"

namespace mdfs::engine {

struct GroupProtector::Job {
  const ProtectRequest& request;
  std::uint64_t gone = 0;  // disks, a bit each
  std::vector<GroupUnit> units{};
  store::Reservation reservation{};
  ProtectOutcome outcome{};
};

// ---- the work

Result<ProtectOutcome> GroupProtector::run(OpenObject& object, const ProtectRequest& request) {
  Job job{request, core_.gone_disks() | request.drained_disks};
  std::map<std::uint64_t, std::uint64_t> pages;
  for (const geometry::Coord& extent : request.extents) {
    const geometry::PagePlace place = object.page_of(extent);
    pages[place.page] |= place_bit(place.place);
  }
  std::uint64_t bytes = 0;
  const auto work = [&](std::uint64_t least) -> Status {
    if (job.units.empty() || bytes < least) return {};
    if (request.pace) MDFS_TRY(request.pace(std::exchange(bytes, 0)));
    bytes = 0;
    return run_batch(object, job);
  };
  for (auto& [page, places] : pages) {
    while (places != 0) {
      MDFS_TRY_ASSIGN(const KnownPage known, core_.extent_map.page(object, page, false));
      const auto place = static_cast<unsigned>(std::countr_zero(places));
      const std::uint64_t all =
          planner_.places_of_unit(object, known, place, planner_.most_members(object, request.width));
      places &= ~all;
      MDFS_TRY_ASSIGN(GroupUnit unit, planner_.look_up(object, page, known, all, request));
      planner_.plan(object, unit, request);
      if (unit.extents.empty() || (GroupPlanner::is_as_wanted(unit, request) && !request.verifies)) continue;
      bytes += unit.bytes(object.block_size);
      job.units.push_back(std::move(unit));
      MDFS_TRY(work(kRebuildPieceBytes));
    }
  }
  MDFS_TRY(work(0));
  return std::move(job.outcome);
}

Status GroupProtector::run_batch(OpenObject& object, Job& job) {
  std::uint64_t bytes = 0;
  for (const GroupUnit& unit : job.units) bytes += unit.memory_bytes(object.block_size);
  const ByteBudget::Share share = core_.loads.wait_for(bytes);
  Status status = read(object, job);
  if (status.ok()) status = write(object, job);
  if (status.ok()) status = publish(object, job);
  for (GroupUnit& unit : job.units) {
    if (unit.state != GroupUnit::State::kDone)
      for (const format::Runs* const runs : unit.new_runs())
        for (const store::Run& run : *runs) core_.store.abandon(run);
    if (unit.state == GroupUnit::State::kNoRoom) ++job.outcome.no_room;
    if (unit.state == GroupUnit::State::kChanged) ++job.outcome.changed;
  }
  job.reservation = store::Reservation();
  const bool no_room = !status.ok() && status.error().code == Errc::kNoSpace;
  if (no_room) job.outcome.no_room += job.units.size();
  job.units.clear();
  return no_room ? Status() : std::move(status);
}

// Of all extents at once the pieces that are there. What that does not read is read one by one.
Status GroupProtector::read(OpenObject& object, Job& job) {
  const device::UrgencyScope scope(device::in_background());
  const std::uint64_t absent = core_.gone_disks();  // not those that pieces are to leave
  std::vector<Segment> segments;
  for (GroupUnit& unit : job.units) {
    for (GroupExtent& extent : unit.extents) {
      if (!extent.needs_bytes) continue;
      const std::uint64_t bytes = extent.from.piece_blocks() * object.block_size;
      extent.bytes = core_.cache.acquire(bytes, Use::kBrief);
      const bool reads_own = !extent.makes_first || (StoredExtent::disks_of(extent.from.runs) & absent) == 0;
      if (!reads_own && (extent.from.others.disks() & absent) == 0)
        extent.others = OtherBytes(core_, extent.from, segments);
      if (reads_own) append_segments(extent.runs_now(), object.block_size, 0, bytes, extent.bytes.data(), 0, segments);
    }
  }
  const bool all_read = read_all(core_.store, segments, core_.options.largest_request_bytes).ok();
  for (GroupUnit& unit : job.units) {
    for (GroupExtent& extent : unit.extents) {
      if (!extent.needs_bytes || !all_read) continue;
      const bool from_others = !extent.others.empty();
      extent.is_read = from_others ? extent.others.make(extent.from, extent.bytes.bytes())
                                   : holds(extent.from, extent.bytes.bytes());
      extent.others = {};
    }
    MDFS_TRY(judge(object, job, unit));
    if (unit.state == GroupUnit::State::kOpen) sum_up(object, unit);
  }
  return {};
}

// What was not read is read from elsewhere, and written anew. A unit with an extent that nothing has stays as it is:
// a disk that comes back may have it, and the pieces beside it are of use then.
Status GroupProtector::judge(OpenObject& object, Job& job, GroupUnit& unit) {
  bool replans = false;
  for (GroupExtent& extent : unit.extents) {
    if (!extent.needs_bytes) continue;
    if (extent.is_read) {
      if (!job.request.verifies || !extent.from.has_copy()) continue;
      // Of two pieces the other one as well.
      const BufferRef other = core_.cache.acquire(extent.bytes.size(), Use::kBrief);
      const StoredExtent piece = extent.by_copy ? extent.from : extent.from.by_copy();
      if (!extent.drops_copy && !read_piece(core_, piece, other.bytes()).ok()) {
        extent.drops_copy = replans = true;
      }
      continue;
    }
    Status status = read_piece(core_, extent.by_copy ? extent.from.by_copy() : extent.from, extent.bytes.bytes());
    const bool was_bad = !status.ok() && !extent.makes_first;
    if (!status.ok() && extent.from.has_copy())
      status = read_piece(core_, extent.by_copy ? extent.from : extent.from.by_copy(), extent.bytes.bytes());
    if (status.ok() && was_bad) {  // the other piece is the good one
      extent.by_copy = !extent.by_copy;
      extent.drops_copy = replans = true;
    }
    if (!status.ok() && extent.from.others) {
      status = read_from_others(core_, extent.from, extent.bytes.bytes());
      if (status.ok() && was_bad) extent.makes_first = replans = true;
    }
    extent.is_read = status.ok();
    MDFS_TRY_ASSIGN(const bool current, is_same(core_, core_.store, object, extent.coord, extent.from));
    if (!current) {
      unit.state = GroupUnit::State::kChanged;
      return {};
    }
    if (was_bad && !job.request.verifies) core_.store.note_checksum_error(extent.from.first().disk);
    if (status.ok()) continue;
    unit.state = GroupUnit::State::kDamaged;
    const store::Run& at = extent.from.first();
    if (status.error().code == Errc::kCorrupt)
      status = Error{Errc::kCorrupt,
                     fmt::format("extent.checksum: object {}, disk {} block {}", object.number, at.disk, at.block)};
    job.outcome.damaged.push_back({extent.coord, unit.page * format::kMaxPlaces + extent.place, at, status.error()});
  }
  if (unit.state == GroupUnit::State::kDamaged) return {};
  if (job.request.verifies) {
    for (std::size_t i = 0; i < unit.groups.size(); ++i) {
      if ((unit.bad_parities & place_bit(static_cast<unsigned>(i))) != 0) continue;
      const StoredExtent parity = unit.groups[i].parity.stored(object.table, object.block_size);
      const BufferRef bytes = core_.cache.acquire(parity.piece_blocks() * object.block_size, Use::kBrief);
      if (read_piece(core_, parity, bytes.bytes()).ok()) continue;
      unit.bad_parities |= place_bit(static_cast<unsigned>(i));
      replans = true;
    }
  }
  if (!replans) return {};
  unit.parities.clear();
  planner_.plan(object, unit, job.request);
  for (const GroupExtent& extent : unit.extents)
    if (extent.needs_bytes && !extent.is_read)
      unit.state = GroupUnit::State::kChanged;  // the next call reads it as well
  job.outcome.again = job.outcome.again || unit.state == GroupUnit::State::kChanged;
  return {};
}

// The bytes of new parities, and their checksums.
void GroupProtector::sum_up(const OpenObject& object, GroupUnit& unit) {
  for (NewParity& parity : unit.parities) {
    StoredExtent& stored = parity.parity;
    for (const GroupExtent& extent : unit.extents)
      if (parity.has(extent.place)) {
        stored.stored_bytes = std::max(stored.stored_bytes, extent.from.stored_bytes);
        stored.part_bytes = extent.from.part_bytes;
      }
    if (!object.is_raw()) stored.part_bytes = stored.stored_bytes;
    parity.bytes = core_.cache.acquire(align_up(stored.stored_bytes, object.block_size), Use::kBrief);
    std::memset(parity.bytes.data(), 0, parity.bytes.size());
    for (const GroupExtent& extent : unit.extents)
      if (parity.has(extent.place))
        format::add_to_parity(parity.bytes.bytes(), ConstBytes(extent.bytes.bytes()).first(extent.from.stored_bytes));
    for (std::uint32_t begin = 0; begin < stored.stored_bytes; begin += stored.part_bytes) {
      const std::uint32_t length = std::min(stored.part_bytes, stored.stored_bytes - begin);
      stored.crc32c.push_back(crc32c({parity.bytes.data() + begin, length}));
    }
  }
}

// All new pieces of a unit. False: there is no room for one.
bool GroupProtector::place(const OpenObject& object, Job& job, GroupUnit& unit) {
  const std::vector<std::uint64_t> free_blocks = core_.store.free_of_disks();
  const auto members_of = [&](unsigned place) {
    for (const NewParity& parity : unit.parities)
      if (parity.has(place)) return parity.members;
    for (const format::ParityGroup& group : unit.groups)
      if (group.has(place) && (unit.dissolved & place_bit(place)) == 0) return group.members;
    return place_bit(place);
  };
  // Of the others in its group, with the parity if that stays.
  const auto other_disks = [&](const GroupExtent& extent) {
    std::uint64_t disks = 0;
    const std::uint64_t members = members_of(extent.place);
    for (const GroupExtent& other : unit.extents)
      if (other.place != extent.place && (members & place_bit(other.place)) != 0) disks |= other.disks_then();
    for (const format::ParityGroup& group : unit.groups)
      if (group.has(extent.place) && (unit.dissolved & place_bit(extent.place)) == 0)
        disks |= std::uint64_t{1} << format::Address::unpack(group.parity.address).disk;
    if (extent.from.has_copy() && !extent.drops_copy) disks |= StoredExtent::disks_of(extent.from.copy);
    return disks;
  };
  PieceToPlace piece;
  piece.where.policy = object.image->policy;
  for (GroupExtent& extent : unit.extents) {
    if (!extent.makes_first) continue;
    piece.where.disk = extent.disk;
    piece.where.owner = object.number;
    piece.taken = job.gone | other_disks(extent);
    piece.blocks = extent.from.piece_blocks();
    piece.contiguous = !std::has_single_bit(members_of(extent.place));
    if (!place_apart(core_, piece, free_blocks, job.reservation, extent.first)) return false;
  }
  piece.where.owner = object.number | kCopyOwner;
  for (GroupExtent& extent : unit.extents) {
    if (!extent.makes_copy) continue;
    piece.taken = job.gone | extent.disks_then();
    piece.blocks = extent.from.piece_blocks();
    piece.contiguous = false;
    piece.where.disk = object.disk_for_copy(extent.coord, piece.blocks, piece.taken, free_blocks);
    if (!place_apart(core_, piece, free_blocks, job.reservation, extent.copy)) return false;
  }
  for (NewParity& parity : unit.parities) {
    piece.taken = job.gone;
    const GroupExtent* lowest = nullptr;
    for (const GroupExtent& extent : unit.extents) {
      if (!parity.has(extent.place)) continue;
      lowest = lowest == nullptr ? &extent : lowest;
      piece.taken |= extent.disks_then();
    }
    piece.blocks = parity.bytes.size() / object.block_size;
    piece.contiguous = true;
    piece.where.disk = object.disk_for_copy(lowest->coord, piece.blocks, piece.taken, free_blocks);
    if (!place_apart(core_, piece, free_blocks, job.reservation, parity.parity.runs)) return false;
  }
  return true;
}

Status GroupProtector::write(OpenObject& object, Job& job) {
  store::SpaceAmount amount;
  bool had_pieces = true;
  for (const GroupUnit& unit : job.units) {
    if (unit.state != GroupUnit::State::kOpen) continue;
    for (const NewParity& parity : unit.parities) amount.blocks += parity.bytes.size() / object.block_size;
    for (const GroupExtent& extent : unit.extents) {
      const store::SpaceAmount worst = object.worst_case(0, false);
      amount += {(extent.makes_first + extent.makes_copy) * extent.from.piece_blocks(), worst.items + 1,
                 worst.bytes + sizeof(mdfs_group) + 2 * sizeof(mdfs_parity)};
      had_pieces = had_pieces && extent.from.is_protected();
    }
  }
  if (amount.empty()) return {};
  const auto purpose = !job.request.copies ? store::Purpose::kFreeing
                       : had_pieces        ? store::Purpose::kReserved
                                           : store::Purpose::kNormal;
  MDFS_TRY_ASSIGN(job.reservation, core_.store.reserve(amount, purpose));
  std::vector<Segment> segments;
  const auto add = [&](const format::Runs& runs, const BufferRef& bytes) {
    if (!runs.empty()) append_segments(runs, object.block_size, 0, bytes.size(), bytes.data(), 0, segments);
  };
  for (GroupUnit& unit : job.units) {
    if (unit.state != GroupUnit::State::kOpen) continue;
    if (!place(object, job, unit)) {
      unit.state = GroupUnit::State::kNoRoom;
      continue;
    }
    for (const GroupExtent& extent : unit.extents) {
      add(extent.first, extent.bytes);
      add(extent.copy, extent.bytes);
    }
    for (const NewParity& parity : unit.parities) add(parity.parity.runs, parity.bytes);
    unit.state = GroupUnit::State::kReady;
  }
  const device::UrgencyScope scope(device::in_background());
  return write_all(core_.store, segments, core_.options.largest_request_bytes);
}

Status GroupProtector::publish(OpenObject& object, Job& job) {
  const auto ready = [](const GroupUnit& unit) { return unit.state == GroupUnit::State::kReady; };
  if (std::none_of(job.units.begin(), job.units.end(), ready)) return {};
  std::vector<GroupUnit*> published;
  Publisher::Pages pages;
  const std::lock_guard publishing(object.publishing);
  const auto change = [&](store::Transaction& transaction) -> Status {
    published.clear();
    Publisher publisher(core_, object, transaction);
    for (GroupUnit& unit : job.units) {
      if (!ready(unit)) continue;
      bool same = true;
      for (const GroupExtent& extent : unit.extents) {
        MDFS_TRY_ASSIGN(const bool one, is_same(core_, transaction, object, extent.coord, extent.from));
        same = same && one;
      }
      if (!same) continue;
      if (unit.dissolved != 0) MDFS_TRY(publisher.dissolve_groups(unit.page, unit.dissolved));
      std::vector<Staged> staged;
      for (const GroupExtent& extent : unit.extents) {
        if (!extent.by_copy && !extent.makes_first && !extent.makes_copy && !extent.drops_copy) continue;
        Staged& one = staged.emplace_back();
        one.index = object.extent_index(extent.coord);
        one.coord = extent.coord;
        one.is_moved = true;
        one.extent = extent.by_copy ? extent.from.by_copy() : extent.from;
        if (extent.makes_first) one.extent.runs = extent.first;
        if (extent.drops_copy) one.extent.copy.clear();
        if (extent.makes_copy) one.extent.copy = extent.copy;
        if ((unit.dissolved & place_bit(extent.place)) != 0) one.extent.others = {};
      }
      if (!staged.empty()) MDFS_TRY(publisher.publish(staged));
      for (const NewParity& parity : unit.parities)
        MDFS_TRY(publisher.add_group(unit.page, parity.members, parity.parity));
      published.push_back(&unit);
    }
    if (published.empty()) return {};
    pages = publisher.pages();
    return publisher.update_inode();
  };
  const auto purpose = job.request.copies ? store::Purpose::kReserved : store::Purpose::kFreeing;
  MDFS_TRY(core_.store.transact(purpose, change, &job.reservation));
  update_cached_pages(core_, object, pages);
  note_published(object, job, published);
  return {};
}

void GroupProtector::note_published(const OpenObject& object, Job& job, const std::vector<GroupUnit*>& published) {
  for (GroupUnit& unit : job.units)
    if (unit.state == GroupUnit::State::kReady) unit.state = GroupUnit::State::kChanged;
  ProtectOutcome& outcome = job.outcome;
  for (GroupUnit* const unit : published) {
    unit->state = GroupUnit::State::kDone;
    for (const format::Runs* const runs : unit->new_runs())
      for (const store::Run& run : *runs) {
        const std::uint64_t bytes = std::uint64_t{run.blocks} * object.block_size;
        outcome.bytes += bytes;
        outcome.bytes_of_disks[run.disk] += bytes;
      }
    for (const GroupExtent& extent : unit->extents) {
      const bool was_repaired = extent.makes_first || extent.by_copy;
      outcome.repaired += was_repaired ? 1 : 0;
      outcome.made += extent.makes_copy && !was_repaired ? 1 : 0;
      outcome.removed += extent.drops_copy && !extent.by_copy && !extent.makes_copy ? 1 : 0;
    }
    // A parity in place of a bad one is a repair.
    for (const NewParity& parity : unit->parities) {
      bool replaces_bad = false;
      for (std::size_t i = 0; i < unit->groups.size(); ++i)
        replaces_bad = replaces_bad || (unit->groups[i].members == parity.members && unit->groups[i].leavers.empty());
      ++(replaces_bad ? outcome.repaired : outcome.made);
    }
    if (!job.request.copies) outcome.removed += unit->groups.size();
  }
}

}  // namespace mdfs::engine
