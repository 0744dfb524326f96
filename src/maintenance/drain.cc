// Draining a disk.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/drain.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "format/inode.h"
#include "format/key.h"
#include "maintenance/objects.h"

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
    return {Errc::kInvalidArgument, fmt::format("disk {} cannot take the data of another disk", *to)};
  return {};
}

std::uint64_t Drain::first_block(const OperationRun& run) const {
  return new_blocks(run) == 0 ? 0 : new_blocks(run) - 2 * MDFS_LABEL_AREA / volume_.store().block_size();
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
          fmt::format("disk {1} holds {0}, and the other disks have space for {2}",
                      format_size(used * store.block_size()), disk(run), format_size(room * store.block_size()))};
}

// Of the whole volume, until the first such file is found.
Status Drain::check_pieces(const OperationRun& run) const {
  store::Store& store = volume_.store();
  if (target(run) || (store.features_ro_compat() & MDFS_RO_COMPAT_PROTECTION) == 0) return {};
  unsigned left = 0;
  for (unsigned i = 0; i < store.disk_count(); ++i) {
    const store::DiskInfo info = store.disk_info(i);
    if (i != disk(run) && info.state == store::DiskState::kHealthy && info.weight > 0) ++left;
  }
  if (left > 1 || store.disk_info(disk(run)).weight == 0) return {};
  for (std::uint64_t next = 0;;) {
    MDFS_TRY_ASSIGN(const auto items, store.scan({next, 0, 0}, format::kMaxKey, 1));
    if (items.empty()) return {};
    const format::Key& key = items.front().key;
    const auto inode = key.kind == MDFS_KIND_INODE ? format::decode_inode(items.front().value)
                                                   : Result<format::Inode>(Error{Errc::kNotFound, ""});
    if (inode.ok() && inode->has_copies())
      return {Errc::kNotEmpty,
              fmt::format("inode {} has copies or parities, which need two disks for data; beside disk "
                          "{} there is one",
                          key.object, disk(run))};
    next = key.object + 1;
  }
}

Status Drain::begin(OperationRun& run) {
  MDFS_TRY(check(run));
  if (is_done(run) && new_blocks(run) != 0)
    return {Errc::kInvalidArgument, fmt::format("disk {} has that size already", disk(run))};
  if (is_done(run)) return {Errc::kInvalidArgument, fmt::format("there is no disk {}", disk(run))};
  store::Store& store = volume_.store();
  if (!store.read_only()) MDFS_TRY(store.commit_freed());  // what has been deleted is room
  if (new_blocks(run) != 0) return begin_resize(run);
  MDFS_TRY(check_pieces(run));
  run.record.bytes_total = store.used_blocks(disk(run)) * store.block_size();
  run.record.cursor = {};
  if (!run.may_write()) return check_room(run);
  std::uint64_t missing = 0;
  const Status draining = store.set_draining(disk(run), true, &missing);
  if (!draining.ok() && draining.error().code == Errc::kNoSpace)
    return {Errc::kNoSpace, fmt::format("the other disks lack {1} of space for the data on disk {0}", disk(run),
                                        format_size(missing * store.block_size()))};
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
  forget();
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
  forget();
  if (!run.may_write() || is_done(run)) return {};
  begin_pass(run);
  if (new_blocks(run) != 0) return limit(run, nullptr);
  return volume_.store().set_draining(disk(run), true, nullptr);
}

// A pass examines extents again that an earlier pass left behind, so its error records replace the earlier ones.
void Drain::begin_pass(OperationRun& run) {
  walk_.begin(0);
  phase_ = Phase::kData;
  consolidated_ = regrouped_ = 0;
  run.record.items_failed = 0;
  run.record.errors.clear();
  for (format::OperationDisk& row : run.record.disks) row.failed = 0;
  stuck_ = no_room_ = 0;
  node_ = {};
}

void Drain::note_progress(OperationRun& run) {
  store::Store& store = volume_.store();
  OperationRecord& record = run.record;
  const std::uint64_t left = used_bytes(run);
  const std::uint64_t moved = disk(run) < record.disks.size() ? record.disks[disk(run)].read_bytes : 0;
  record.bytes_total = std::max(record.bytes_total, left);
  if (!store.disk_info(disk(run)).is_there()) record.bytes_total = std::max(record.bytes_total, moved);
  // The former blocks of moved extents stay in use for two more commits.
  record.bytes_done = std::max(record.bytes_total - left, std::min(moved, record.bytes_total));
}

// ---- candidates

Result<bool> Drain::find(OperationRun& run) {
  if (!run.may_write() || is_done(run)) return false;
  if (phase_ == Phase::kRemove) {
    MDFS_TRY_ASSIGN(const bool removed, remove(run));
    if (removed) run.record.bytes_done = run.record.bytes_total;
    return !removed;
  }
  if (phase_ == Phase::kNodes) {
    MDFS_TRY_ASSIGN(const bool all, volume_.store().move_nodes_off(disk(run), node_));
    if (all) phase_ = Phase::kRemove;
    return true;
  }
  MDFS_TRY_ASSIGN(const std::optional<ObjectPart> part, walk_.next());
  if (part)
    MDFS_TRY(look_at(run, *part));
  else
    phase_ = Phase::kNodes;
  return true;
}

Status Drain::look_at(OperationRun& run, const ObjectPart& part) {
  if (part.is_first) ++run.record.items_done;
  if (!part.listed.ok()) {  // it cannot be moved; the rest is
    note_stuck(run, part.object, part.listed.error());
    return {};
  }
  std::vector<geometry::Coord> extents, copies;
  bool in_strips = false, has_leavers = false;
  for (const layout::ExtentPlace& place : part.rows) {
    if (place.disk != disk(run) || place.end <= first_block(run)) continue;
    in_strips = in_strips || place.in_strip;
    has_leavers = has_leavers || place.is_leaver;
    if (place.is_leaver) continue;
    // The runs of a cell follow each other.
    if (place.in_strip) continue;
    if (place.is_copy)
      copies.push_back(place.index);
    else if (extents.empty() || extents.back() != place.index)
      extents.push_back(place.index);
  }
  // Objects with such blocks in strips are consolidated first, which writes the extents where the placement names now.
  // Then all of the object is examined.
  if (in_strips && std::exchange(consolidated_, part.object) != part.object) {
    const Status written = volume_.fsync(part.object, true);
    if (written.ok()) queue({.object = part.object, .reason = MoveReason::kInStrips});
    if (!written.ok() && written.error().code != Errc::kNotFound) note_stuck(run, part.object, written.error());
    if (written.ok()) return {};
  }
  if (has_leavers && std::exchange(regrouped_, part.object) != part.object) {
    const Status formed = form_groups(part.object);
    if (!formed.ok() && formed.error().code != Errc::kNotFound) note_stuck(run, part.object, formed.error());
    if (formed.ok()) walk_.begin_again();
    return {};
  }
  MDFS_TRY(queue_units(run, part.object, extents, false));
  return queue_units(run, part.object, copies, true);
}

// Groups that keep blocks of former members are made anew without them.
Status Drain::form_groups(Ino object) {
  MDFS_TRY_ASSIGN(const auto open, volume_.open_object(object));
  engine::ProtectRequest request = engine::ProtectRequest::wanted_by(*open);
  for (std::uint64_t page = 0; page != UINT64_MAX;) {
    MDFS_TRY_ASSIGN(request.extents, volume_.engine().find_unprotected(*open, request, page, kExtentsAtOnce));
    if (request.extents.empty()) continue;
    const auto outcome = volume_.engine().protect(*open, request);
    if (!outcome.ok()) return outcome.error();
  }
  return {};
}

Status Drain::queue_units(const OperationRun& run, Ino object, const std::vector<geometry::Coord>& extents,
                          bool of_copies) {
  for (std::size_t first = 0, last = 0; first < extents.size(); first = last) {
    last = std::min(extents.size(), first + kExtentsAtOnce);
    Candidate candidate{.object = object, .reason = MoveReason::kDraining};
    auto request = request_for(
        run, object,
        {extents.begin() + static_cast<std::ptrdiff_t>(first), extents.begin() + static_cast<std::ptrdiff_t>(last)},
        of_copies);
    if (!request.ok() && request.error().code == Errc::kNotFound) return {};  // deleted meanwhile
    MDFS_TRY_ASSIGN(candidate.request, std::move(request));
    queue(std::move(candidate));
  }
  return {};
}

// To the disk that the placement names, which is no longer this one; or all to the one disk that takes its place.
Result<engine::MoveRequest> Drain::request_for(const OperationRun& run, Ino object,
                                               std::vector<geometry::Coord> extents, bool of_copies) {
  engine::MoveRequest request;
  request.of_copies = of_copies;
  request.extents = std::move(extents);
  request.most_runs = 0;
  request.purpose = store::Purpose::kReserved;
  request.freed = [from = disk(run), end = first_block(run)](const store::Run& place) {
    if (place.disk != from) return std::uint64_t{place.blocks};
    return std::min<std::uint64_t>(place.blocks, end - std::min(end, place.block));
  };
  if (const auto to = target(run)) {
    request.disk = [to](const geometry::Coord&) { return *to; };
    return request;
  }
  MDFS_TRY_ASSIGN(request.disk, of_copies ? disks_of_copies(volume_, object) : disks_of_extents(volume_, object));
  return request;
}

// On any other disk, the emptiest first. Then one by one: many at a time need room in many nodes of the tree at a time,
// and a commit gives back that of those that have moved.
Result<bool> Drain::find_elsewhere(OperationRun& run, Candidate& candidate) {
  store::Store& store = volume_.store();
  std::optional<std::pair<std::uint64_t, unsigned>> other;
  for (unsigned i = 0; i < store.disk_count(); ++i) {
    const store::DiskInfo info = store.disk_info(i);
    if (i == disk(run) || info.state != store::DiskState::kHealthy || (candidate.tried_disks >> i & 1) != 0) continue;
    other = std::max(other, std::optional(std::pair(info.free_blocks, i)));
  }
  if (other) {
    candidate.tried_disks |= std::uint64_t{1} << other->second;
    candidate.request.disk = [to = other->second](const geometry::Coord&) { return to; };
    return true;
  }
  if (candidate.request.extents.size() == 1) return false;
  MDFS_TRY(commit());
  for (const geometry::Coord& extent : std::exchange(candidate.outcome.no_room, {}))
    MDFS_TRY(queue_units(run, candidate.object, {extent}, candidate.request.of_copies));
  return false;
}

Status Drain::done(OperationRun& run, Candidate candidate, const Status& status) {
  const Ino object = candidate.object;
  if (!status.ok() && status.error().code != Errc::kNotFound) note_stuck(run, object, status.error());
  if (candidate.reason == MoveReason::kInStrips) walk_.begin_again();
  engine::MoveOutcome& outcome = candidate.outcome;
  OperationRecord& record = run.record;
  MDFS_TRY_ASSIGN(const std::size_t forgotten, forget_of_level(object, outcome));
  record.items_changed += forgotten;
  MDFS_TRY(regroup(run, object, outcome));
  record.items_changed += outcome.moved;
  if (disk(run) < record.disks.size()) {
    record.disks[disk(run)].read_bytes += outcome.moved_bytes;
    record.disks[disk(run)].repaired += outcome.moved;
  }
  stuck_ += outcome.no_room.size() + outcome.damaged.size();
  no_room_ += outcome.no_room.size();
  for (const engine::MoveOutcome::Damaged& damaged : outcome.damaged)
    spdlog::error("drain: object {}: {}", object, damaged.error.message());
  note_damaged(record, object, outcome);
  if (!outcome.no_room.empty())
    record.note_error({object, 0, 0, static_cast<std::uint16_t>(disk(run)), MDFS_ERROR_SKIPPED});
  return {};
}

// Too few disks may be left for pieces of parity groups: narrower groups, or copies, take their place.
Status Drain::regroup(const OperationRun& run, Ino object, engine::MoveOutcome& outcome) {
  if (outcome.no_room.empty()) return {};
  const auto open = volume_.open_object(object);
  if (!open.ok() && open.error().code == Errc::kNotFound) return {};
  MDFS_TRY(open);
  engine::ProtectRequest request = engine::ProtectRequest::wanted_by(**open);
  if (request.width <= 1) return {};
  request.extents = outcome.no_room;
  request.drained_disks = std::uint64_t{1} << disk(run);
  const auto grouped = volume_.engine().protect(**open, request);
  if (!grouped.ok() && grouped.error().code == Errc::kNoSpace) return {};
  MDFS_TRY(grouped);
  if (grouped->no_room > 0 || grouped->changed > 0 || !grouped->damaged.empty()) return {};
  outcome.moved += std::exchange(outcome.no_room, {}).size();
  outcome.moved_bytes += grouped->bytes;
  return {};
}

// Extents of a level are built again from the image: none of them keeps the disk.
Result<std::size_t> Drain::forget_of_level(Ino object, engine::MoveOutcome& outcome) {
  if (outcome.damaged.empty()) return std::size_t{0};
  std::vector<std::uint64_t> numbers;
  for (const engine::MoveOutcome::Damaged& damaged : outcome.damaged) numbers.push_back(damaged.number);
  MDFS_TRY_ASSIGN(const bool forgotten, volume_.forget_level_extents(object, numbers));
  if (!forgotten) return std::size_t{0};
  outcome.damaged.clear();
  return numbers.size();
}

// All of an object, or its strips.
void Drain::note_stuck(OperationRun& run, Ino object, const Error& error) {
  spdlog::error("drain: object {}: {}", object, error.message());
  const bool no_room = error.code == Errc::kNoSpace;
  ++stuck_;
  no_room_ += no_room ? 1 : 0;
  run.record.note_error({object, 0, 0, static_cast<std::uint16_t>(disk(run)),
                         static_cast<std::uint16_t>(no_room ? MDFS_ERROR_SKIPPED : MDFS_ERROR_UNREADABLE)});
}

// ---- the end

bool Drain::is_done(const OperationRun& run) const {
  if (new_blocks(run) != 0) return volume_.store().disk_info(disk(run)).blocks == new_blocks(run);
  return volume_.store().disk_info(disk(run)).state == store::DiskState::kNone;
}

unsigned Drain::healthy_disks() const {
  unsigned count = 0;
  for (unsigned i = 0; i < volume_.store().disk_count(); ++i)
    count += volume_.store().disk_info(i).state == store::DiskState::kHealthy ? 1 : 0;
  return count;
}

// Blocks that were allocated before the drain began may have been published since the last pass: then another pass
// follows.
Result<bool> Drain::remove(OperationRun& run) {
  store::Store& store = volume_.store();
  const bool there = store.disk_info(disk(run)).is_there();
  Status removed = Error{Errc::kNotEmpty, fmt::format("disk {}", disk(run))};
  // Only a walk over all objects finds the contents of an absent disk.
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
  const std::uint64_t passes = ++run.record.cursor[0];
  if (new_blocks(run) != 0 && (passes >= kMostPasses || (stuck_ > 0 && passes > 1)))
    return Error{no_room_ == stuck_ ? Errc::kNoSpace : Errc::kIo,
                 fmt::format("{} pieces of files, {}, stay at the end of disk {}, which keeps its size", stuck_,
                             format_size(used_bytes(run)), disk(run))};
  if (passes >= kMostPasses || (stuck_ > 0 && passes > 1))
    return Error{no_room_ == stuck_ ? Errc::kNoSpace : Errc::kIo,
                 fmt::format("{} pieces of files stay on disk {}: {}", stuck_, disk(run),
                             healthy_disks() == 1 ? "free space; copies (mdfs image protect) need two disks"
                                                  : "delete their files (mdfs volume lost) or free space, then retry")};
  begin_pass(run);
  return false;
}

}  // namespace mdfs::maintenance
