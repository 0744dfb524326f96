// Draining a disk.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/drain.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "maintenance/moves.h"

namespace mdfs::maintenance {
std::optional<unsigned> Drain::target(const OperationRun& run) const {
  if (run.record.parameters[1] == 0) return std::nullopt;
  return static_cast<unsigned>(run.record.parameters[1] - 1);
}

Status Drain::check(const OperationRun& run) const {
  store::Store& store = volume_.store();
  const auto& parameters = run.record.parameters;
  if (parameters[0] >= store.disk_count() || parameters[1] > store.disk_count() || parameters[0] + 1 == parameters[1] ||
      (parameters[1] != 0 && parameters[2] != 0))
    return {Errc::kInvalidArgument, "there is no such disk"};
  if (const auto to = target(run); to && store.disk_info(*to).state != store::DiskState::kHealthy)
    return {Errc::kInvalidArgument, fmt::format("disk {} cannot take what lies on another", *to)};
  return {};
}

std::uint64_t Drain::first_block(const OperationRun& run) const {
  return new_blocks(run) == 0 ? 0 : new_blocks(run) - 2 * MDFS_LABEL_AREA / volume_.store().block_size();
}

bool Drain::has_to_go(const OperationRun& run, const UnitPlace& place) const {
  return place.reaches_behind(disk(run), first_block(run));
}

std::uint64_t Drain::used_bytes(const OperationRun& run) const {
  const store::Store& store = volume_.store();
  return (new_blocks(run) == 0 ? store.used_blocks(disk(run)) : store.used_behind_end(disk(run))) * store.block_size();
}

// As set_draining() judges it, for a dry run.
Status Drain::check_room(OperationRun& run) const {
  store::Store& store = volume_.store();
  const std::uint64_t used = store.used_blocks(disk(run));
  const store::SpaceInfo space = store.space();
  const store::DiskInfo info = store.disk_info(disk(run));
  const bool counted = info.state == store::DiskState::kHealthy;
  const std::uint64_t own = counted ? info.free_blocks : 0;
  const std::uint64_t room = space.available_blocks - std::min(space.available_blocks, own);
  run.record.figures[0] = used > room ? (used - room) * store.block_size() : 0;
  if (used <= room) return {};
  return {Errc::kNoSpace,
          fmt::format("{} lie on disk {}, and the others have room for {}", format_size(used * store.block_size()),
                      disk(run), format_size(room * store.block_size()))};
}

Status Drain::begin(OperationRun& run) {
  MDFS_TRY(check(run));
  if (is_done(run) && new_blocks(run) != 0)
    return {Errc::kInvalidArgument, fmt::format("disk {} has that size already", disk(run))};
  if (is_done(run)) return {Errc::kInvalidArgument, fmt::format("there is no disk {}", disk(run))};
  store::Store& store = volume_.store();
  if (!store.read_only()) MDFS_TRY(store.commit_unlinked());  // what has been deleted is room
  if (new_blocks(run) != 0) return begin_resize(run);
  run.record.bytes_total = store.used_blocks(disk(run)) * store.block_size();
  run.record.cursor = {};
  if (!run.may_write()) return check_room(run);
  std::uint64_t missing = 0;
  const Status draining = store.set_draining(disk(run), true, &missing);
  if (!draining.ok() && draining.error().code == Errc::kNoSpace)
    return {Errc::kNoSpace, fmt::format("the other disks have too little room for what lies on disk {}: {} are missing",
                                        disk(run), format_size(missing * store.block_size()))};
  MDFS_TRY(draining);
  MDFS_TRY(volume_.placements().replace_disk(static_cast<std::uint16_t>(disk(run)), target(run)));
  volume_.placements_changed();
  return resume(run);
}

Status Drain::limit(const OperationRun& run, std::uint64_t* missing_blocks) {
  MDFS_TRY(volume_.store().set_disk_end(disk(run), new_blocks(run), missing_blocks));
  limited_disk_ = disk(run);
  return {};
}

// Only this operation uses the place at its end: without the operation the whole disk is used again.
void Drain::rest() {
  if (!limited_disk_) return;
  const unsigned disk = *std::exchange(limited_disk_, std::nullopt);
  const Status freed = volume_.store().set_disk_end(disk, volume_.store().disk_info(disk).blocks, nullptr);
  if (!freed.ok())
    spdlog::warn("disk {} gets nothing new at its end before the next mount: {}", disk, freed.error().message());
}

Status Drain::begin_resize(OperationRun& run) {
  store::Store& store = volume_.store();
  MDFS_TRY_ASSIGN(const store::SizeRange range, store.size_range(disk(run)));
  const std::uint64_t now = store.disk_info(disk(run)).blocks;
  if (new_blocks(run) < range.least_blocks || new_blocks(run) > range.most_blocks)
    return {Errc::kInvalidArgument, fmt::format("disk {} can have {} to {} blocks, not {}", disk(run),
                                                range.least_blocks, range.most_blocks, new_blocks(run))};
  run.record.cursor = {};
  if (new_blocks(run) > now) {
    if (run.may_write()) MDFS_TRY(store.resize_disk(disk(run), new_blocks(run)));
    if (run.may_write()) volume_.members_changed();
    return {};
  }
  std::uint64_t missing = 0;
  const Status limited = limit(run, &missing);
  run.record.bytes_total = used_bytes(run);
  run.record.figures[0] = missing * store.block_size();
  if (limited.ok() && !run.may_write()) rest();
  if (limited.ok() && run.may_write()) begin_pass(run);
  return limited;
}

Status Drain::resume(OperationRun& run) {
  MDFS_TRY(check(run));
  units_.clear();
  next_unit_ = 0;
  listing_ = settling_ = written_back_ = false;
  uncommitted_bytes_ = 0;
  if (!run.may_write() || is_done(run)) return {};
  begin_pass(run);
  if (new_blocks(run) != 0) return limit(run, nullptr);
  return volume_.store().set_draining(disk(run), true, nullptr);
}

// What was left behind before is looked at once more, and told of once.
void Drain::begin_pass(OperationRun& run) {
  run.record.cursor[0] = kData;
  run.record.cursor[1] = 0;
  run.record.items_failed = 0;
  run.record.troubles.clear();
  for (format::OperationDisk& row : run.record.disks) row.failed = 0;
  stuck_ = no_room_ = 0;
  node_level_ = 0;
  next_node_ = format::kMinKey;
}

void Drain::note_progress(OperationRun& run) const {
  store::Store& store = volume_.store();
  OperationRecord& record = run.record;
  const std::uint64_t left = used_bytes(run);
  const std::uint64_t moved = disk(run) < record.disks.size() ? record.disks[disk(run)].read_bytes : 0;
  record.bytes_total = std::max(record.bytes_total, left);
  if (!store.disk_info(disk(run)).is_there()) record.bytes_total = std::max(record.bytes_total, moved);
  // What has moved is in use for two more commits.
  record.bytes_done = std::max(record.bytes_total - left, std::min(moved, record.bytes_total));
}

Result<bool> Drain::step(OperationRun& run) {
  if (!run.may_write() || is_done(run)) return true;
  bool done = false;
  switch (run.record.cursor[0]) {
    case kData: {
      MDFS_TRY_ASSIGN(const bool all, move_data(run));
      if (all) run.record.cursor[0] = kNodes;
      break;
    }
    case kNodes: {
      MDFS_TRY_ASSIGN(const bool all, volume_.store().move_nodes_off(disk(run), node_level_, next_node_));
      if (all) run.record.cursor[0] = kRemove;
      break;
    }
    default: {
      MDFS_TRY_ASSIGN(done, remove(run));
    }
  }
  if (done)
    run.record.bytes_done = run.record.bytes_total;
  else
    note_progress(run);
  return done;
}

Status Drain::list_some(OperationRun& run, std::uint64_t object) {
  units_.clear();
  next_unit_ = 0;
  listing_ = false;
  MDFS_TRY_ASSIGN(const UnitPlaces places, next_units(volume_, object, at_));
  for (const UnitPlace& place : places.units)
    if (has_to_go(run, place)) units_.push_back(place.unit);
  at_ = places.next;
  listing_ = !places.at_end;
  return {};
}

// What cannot be listed cannot be moved; the rest is.
void Drain::note_unlisted(OperationRun& run, std::uint64_t object, const Error& error) {
  spdlog::error("drain: object {}: {}", object, error.message());
  ++stuck_;
  run.record.note_trouble({object, 0, 0, static_cast<std::uint16_t>(disk(run)), MDFS_TROUBLE_UNREADABLE});
}

Result<bool> Drain::strips_on(const OperationRun& run, std::uint64_t object) {
  MDFS_TRY_ASSIGN(const bool any, has_strips(volume_, object));
  engine::LayoutRequest request{.most = kUnitsListedAtOnce, .of = engine::LayoutOf::kStrips};
  for (bool more = any; more;) {
    MDFS_TRY_ASSIGN(const engine::LayoutRows strips, layout_rows(volume_, object, request));
    if (std::any_of(strips.rows.begin(), strips.rows.end(), [&](const layout::ExtentPlace& place) {
          return place.disk == disk(run) && place.end > first_block(run);
        }))
      return true;
    request.from = strips.next;
    more = !strips.at_end;
  }
  return false;
}

// What lies in strips is not moved: it goes into its extents, which are written where the placement says now.
Status Drain::settle_some(OperationRun& run) {
  const std::uint64_t object = run.record.cursor[1];
  Status status;
  if (!std::exchange(written_back_, true)) status = volume_.fsync(object, true);
  Result<std::uint64_t> settled = std::uint64_t{0};
  if (status.ok()) settled = volume_.settle(object, kStepBytes, true);
  if (status.ok() && !settled.ok()) status = Status(settled.error());
  if (status.ok() && *settled > 0) {
    run.spend(2 * *settled);
    uncommitted_bytes_ += *settled;
    if (uncommitted_bytes_ < kBytesPerCommit) return {};
    uncommitted_bytes_ = 0;
    return volume_.store().commit();
  }
  settling_ = written_back_ = false;
  if (!status.ok() && status.error().code != Errc::kNotFound) {
    ++stuck_;
    if (status.error().code == Errc::kNoSpace) ++no_room_;
    spdlog::error("drain: object {}: {}", object, status.error().message());
    run.record.note_trouble(
        {object, 0, 0, static_cast<std::uint16_t>(disk(run)),
         static_cast<std::uint16_t>(status.error().code == Errc::kNoSpace ? MDFS_TROUBLE_SKIPPED
                                                                          : MDFS_TROUBLE_UNREADABLE)});
  }
  at_ = {};
  listing_ = true;
  return {};
}

// The next object with something on the disk; false when there is none.
Result<bool> Drain::find_object(OperationRun& run) {
  return look_at_objects(run, volume_.store(), run.record.cursor[1], [&](std::uint64_t object) {
    const Result<bool> strips = strips_on(run, object);
    settling_ = strips.ok() && *strips;
    if (settling_) return true;
    at_ = {};
    if (const Status listed = list_some(run, object); !listed.ok()) {
      note_unlisted(run, object, listed.error());
      return false;
    }
    return !units_.empty() || listing_;
  });
}

// True when the pass is over.
Result<bool> Drain::move_data(OperationRun& run) {
  if (settling_) {
    MDFS_TRY(settle_some(run));
    return false;
  }
  if (next_unit_ == units_.size() && listing_) {
    const std::uint64_t object = run.record.cursor[1];
    if (const Status listed = list_some(run, object); !listed.ok()) note_unlisted(run, object, listed.error());
    if (units_.empty() && !listing_) ++run.record.cursor[1];
    return false;
  }
  if (next_unit_ == units_.size()) {
    units_.clear();
    next_unit_ = 0;
    MDFS_TRY_ASSIGN(const bool more, find_object(run));
    if (!more) return true;
    if (units_.empty()) return false;
  }
  const std::size_t count = std::min(kUnitsAtOnce, units_.size() - next_unit_);
  const auto first = units_.begin() + static_cast<std::ptrdiff_t>(next_unit_);
  MDFS_TRY_ASSIGN(const bool moved, move_units(run, {first, first + static_cast<std::ptrdiff_t>(count)}));
  if (!moved) return false;
  next_unit_ += count;
  if (next_unit_ == units_.size() && !listing_) ++run.record.cursor[1];
  return false;
}

// Where the placement says, which names the disk no more; or all to the one disk that takes its place.
Result<engine::MoveRequest> Drain::request_for(OperationRun& run, std::vector<geometry::Coord> units) {
  engine::MoveRequest request;
  request.units = std::move(units);
  request.most_runs = 0;
  request.purpose = store::Purpose::kPromised;
  request.freed = [from = disk(run), end = first_block(run)](const store::Run& place) {
    if (place.disk != from) return std::uint64_t{place.blocks};
    return std::min<std::uint64_t>(place.blocks, end - std::min(end, place.block));
  };
  if (const auto to = target(run)) {
    request.disk = [to](const geometry::Coord&) { return *to; };
    return request;
  }
  MDFS_TRY_ASSIGN(request.disk, disks_of_units(volume_, run.record.cursor[1]));
  return request;
}

// What had no room there goes to any other disk, the emptiest first.
Status Drain::move_anywhere(OperationRun& run, engine::MoveOutcome& outcome, const engine::MoveRequest& tried) {
  store::Store& store = volume_.store();
  const std::uint64_t object = run.record.cursor[1];
  std::vector<std::pair<std::uint64_t, unsigned>> others;
  for (unsigned i = 0; i < store.disk_count(); ++i) {
    const store::DiskInfo info = store.disk_info(i);
    if (i != disk(run) && info.state == store::DiskState::kHealthy) others.emplace_back(info.free_blocks, i);
  }
  std::sort(others.rbegin(), others.rend());
  for (const auto& [free, other] : others) {
    MDFS_TRY_ASSIGN(const auto places, unit_places(volume_, object, tried.units));
    std::vector<geometry::Coord> left;
    for (const UnitPlace& place : places)
      if (has_to_go(run, place)) left.push_back(place.unit);
    if (left.empty()) return {};
    engine::MoveRequest request;
    request.units = std::move(left);
    request.most_runs = 0;
    request.purpose = tried.purpose;
    request.freed = tried.freed;
    request.disk = [to = other](const geometry::Coord&) { return to; };
    request.pace = [&](std::uint64_t bytes) -> Status {
      run.spend(2 * bytes);
      return {};
    };
    MDFS_TRY_ASSIGN(engine::MoveOutcome more, volume_.move_data(object, request));
    outcome.no_room = 0;
    outcome.damaged.clear();
    outcome += std::move(more);
    if (outcome.no_room == 0) return {};
  }
  return {};
}

// Many at a time need room in many nodes of the tree at a time, and a commit gives back that of those that have moved.
Status Drain::move_singly(OperationRun& run, engine::MoveOutcome& outcome, const engine::MoveRequest& tried) {
  MDFS_TRY(volume_.store().commit());
  uncommitted_bytes_ = 0;
  const std::uint64_t object = run.record.cursor[1];
  MDFS_TRY_ASSIGN(const auto places, unit_places(volume_, object, tried.units));
  outcome.no_room = 0;
  outcome.damaged.clear();
  for (const UnitPlace& place : places) {
    if (!has_to_go(run, place)) continue;
    engine::MoveRequest request = tried;
    request.units = {place.unit};
    request.pace = [&](std::uint64_t bytes) -> Status {
      run.spend(2 * bytes);
      return {};
    };
    MDFS_TRY_ASSIGN(engine::MoveOutcome one, volume_.move_data(object, request));
    if (one.no_room > 0) MDFS_TRY(move_anywhere(run, one, request));
    outcome += std::move(one);
  }
  return {};
}

// False: told to stop before it was done.
Result<bool> Drain::move_units(OperationRun& run, std::vector<geometry::Coord> units) {
  const std::uint64_t object = run.record.cursor[1];
  const unsigned from = disk(run);
  auto request = request_for(run, std::move(units));
  if (!request.ok() && request.error().code == Errc::kNotFound) return true;  // deleted meanwhile
  MDFS_TRY(request.ok() ? Status() : Status(request.error()));
  auto moved = move_for(run, volume_, object, *request);
  if (!moved.ok() && moved.error().code == Errc::kNotFound) return true;
  if (!moved.ok()) return moved.error();
  if (!*moved) return false;
  engine::MoveOutcome outcome = std::move(**moved);
  if (outcome.no_room > 0) MDFS_TRY(move_anywhere(run, outcome, *request));
  if (outcome.no_room > 0) MDFS_TRY(move_singly(run, outcome, *request));
  run.record.items_changed += outcome.moved;
  if (from < run.record.disks.size()) {
    run.record.disks[from].read_bytes += outcome.moved_bytes;
    run.record.disks[from].repaired += outcome.moved;
  }
  stuck_ += outcome.no_room + outcome.damaged.size();
  no_room_ += outcome.no_room;
  for (const engine::MoveOutcome::Damaged& damaged : outcome.damaged) {
    spdlog::error("drain: object {}: {}", object, damaged.error.message());
    run.record.note_trouble({object, damaged.unit[0], 0, static_cast<std::uint16_t>(from), MDFS_TROUBLE_UNREADABLE});
  }
  if (outcome.no_room > 0)
    run.record.note_trouble({object, 0, 0, static_cast<std::uint16_t>(from), MDFS_TROUBLE_SKIPPED});
  uncommitted_bytes_ += outcome.moved_bytes;
  if (uncommitted_bytes_ < kBytesPerCommit) return true;
  uncommitted_bytes_ = 0;
  MDFS_TRY(volume_.store().commit());
  return true;
}

bool Drain::is_done(const OperationRun& run) const {
  if (new_blocks(run) != 0) return volume_.store().disk_info(disk(run)).blocks == new_blocks(run);
  return volume_.store().disk_info(disk(run)).state == store::DiskState::kNone;
}

// Blocks that were given out before the disk was being drained may have become somebody's since the pass: then another
// one.
Result<bool> Drain::remove(OperationRun& run) {
  store::Store& store = volume_.store();
  const bool there = store.disk_info(disk(run)).is_there();
  Status removed = Error{Errc::kNotEmpty, fmt::format("disk {}", disk(run))};
  // Of a disk that is not there nobody knows what lies on it but by looking at all objects.
  if (new_blocks(run) != 0)
    removed = store.resize_disk(disk(run), new_blocks(run));
  else if (there || stuck_ == 0)
    removed = store.remove_disk(disk(run));
  if (removed.ok()) {
    limited_disk_.reset();
    volume_.members_changed();
    return true;
  }
  if (removed.error().code != Errc::kNotEmpty) return removed.error();
  const std::uint64_t passes = ++run.record.cursor[2];
  if (new_blocks(run) != 0 && (passes >= kMostPasses || (stuck_ > 0 && passes > 1)))
    return Error{no_room_ == stuck_ ? Errc::kNoSpace : Errc::kIo,
                 fmt::format("{} pieces of files, {}, stay at the end of disk {}, which keeps its size", stuck_,
                             format_size(used_bytes(run)), disk(run))};
  if (passes >= kMostPasses || (stuck_ > 0 && passes > 1))
    return Error{Errc::kIo, fmt::format("{} pieces of files stay on disk {}: delete what is named (all of it by mdfs "
                                        "volume lost, if the disk is missing), or make room, and remove it again",
                                        stuck_, disk(run))};
  begin_pass(run);
  return false;
}

}  // namespace mdfs::maintenance
