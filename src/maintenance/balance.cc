// Balancing, step by step.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "maintenance/moves.h"
#include "maintenance/objects.h"

namespace mdfs::maintenance {

Status Balance::check(const OperationRun& run) const {
  store::Store& store = volume_.store();
  const std::uint64_t taking = run.record.parameters[0];
  for (unsigned disk = 0; disk < MDFS_MAX_DISKS; ++disk) {
    if (((taking >> disk) & 1) == 0) continue;
    if (disk >= store.disk_count() || store.disk_info(disk).state != store::DiskState::kHealthy)
      return {Errc::kInvalidArgument, fmt::format("disk {} is absent, or is being drained", disk)};
  }
  return {};
}

std::uint64_t Balance::lacking_blocks(unsigned disk) const {
  store::Store& store = volume_.store();
  double used = 0;
  double weights = 0;
  for (unsigned other = 0; other < store.disk_count(); ++other) {
    const store::DiskInfo info = store.disk_info(other);
    if (info.state != store::DiskState::kHealthy) continue;
    used += static_cast<double>(info.data_blocks - info.data_free_blocks);
    weights += info.weight;
  }
  const store::DiskInfo info = store.disk_info(disk);
  const double has = static_cast<double>(info.data_blocks - info.data_free_blocks);
  return static_cast<std::uint64_t>(std::max(0.0, used * info.weight / weights - has));
}

std::uint64_t Balance::lacking_disks() const {
  store::Store& store = volume_.store();
  std::uint64_t bits = 0;
  for (unsigned disk = 0; disk < store.disk_count(); ++disk) {
    const store::DiskInfo info = store.disk_info(disk);
    if (info.state != store::DiskState::kHealthy) continue;
    const std::uint64_t lacking = lacking_blocks(disk);
    const std::uint64_t share = info.data_blocks - info.data_free_blocks + lacking;
    if (lacking > share / kLeastLacking) bits |= std::uint64_t{1} << disk;
  }
  return bits;
}

Status Balance::begin(OperationRun& run) {
  if (run.record.object != 0) return {Errc::kNotSupported, "balancing takes no file"};
  auto& parameters = run.record.parameters;
  if (parameters[1] > 1) return {Errc::kInvalidArgument, fmt::format("parameter 1 is {}, not 0 or 1", parameters[1])};
  if (parameters[0] == 0 && parameters[1] == 0) return {Errc::kInvalidArgument, "no disk is named"};
  // What has been deleted counts on no disk.
  if (!volume_.store().read_only()) MDFS_TRY(volume_.store().commit_unlinked());
  if (parameters[1] == 1) parameters[0] |= lacking_disks();
  parameters[1] = 0;
  run.record.cursor = {};
  MDFS_TRY(resume(run));
  std::uint64_t blocks = 0;
  for (const auto& [disk, lacking] : lacking_) blocks += lacking;
  run.record.bytes_total = blocks * volume_.store().block_size();
  return {};
}

Status Balance::resume(OperationRun& run) {
  MDFS_TRY(check(run));
  units_.clear();
  next_unit_ = 0;
  listing_ = false;
  uncommitted_bytes_ = 0;
  // What has been deleted, or has moved before a crash, counts on no disk.
  if (!volume_.store().read_only()) MDFS_TRY(volume_.store().commit_unlinked());
  lacking_.clear();
  for (unsigned disk = 0; disk < MDFS_MAX_DISKS; ++disk)
    if (((run.record.parameters[0] >> disk) & 1) != 0) lacking_[disk] = lacking_blocks(disk);
  if (!run.may_write() || run.record.parameters[0] == 0) return {};
  MDFS_TRY(volume_.placements().include_disks(run.record.parameters[0]));
  volume_.placements_changed();
  return {};
}

Status Balance::list_some(OperationRun& run, std::uint64_t object) {
  units_.clear();
  next_unit_ = 0;
  listing_ = false;
  const std::uint64_t taking = run.record.parameters[0];
  MDFS_TRY_ASSIGN(const UnitPlaces places, next_units(volume_, object, at_));
  if (places.units.empty()) return {};
  auto target = disks_of_units(volume_, object, [&](const geometry::Placement& placement) {
    return volume_.placements().with_disks(placement, taking);
  });
  if (!target.ok() && target.error().code == Errc::kNotFound) return {};  // deleted meanwhile
  MDFS_TRY(target.ok() ? Status() : Status(target.error()));
  for (const UnitPlace& place : places.units) {
    const unsigned disk = (*target)(place.unit);
    if (((taking >> disk) & 1) == 0 || place.blocks == 0 || place.disks == std::uint64_t{1} << disk) continue;
    std::uint64_t& lacking = lacking_[disk];
    if (lacking < place.blocks) continue;
    lacking -= place.blocks;
    units_.push_back({place.unit, place.blocks});
  }
  at_ = places.next;
  listing_ = !places.at_end;
  return {};
}

bool Balance::can_list(OperationRun& run, std::uint64_t object) {
  const Status listed = list_some(run, object);
  if (listed.ok()) return true;
  spdlog::error("balancing: object {}: {}", object, listed.error().message());
  run.record.note_trouble({object, 0, 0, 0, MDFS_TROUBLE_SKIPPED});
  return false;
}

// The next object of which something may move; false when there is none.
Result<bool> Balance::find_object(OperationRun& run) {
  return look_at_objects(run, volume_.store(), run.record.cursor[0], [&](std::uint64_t object) {
    at_ = {};
    return can_list(run, object) && (!units_.empty() || listing_);
  });
}

// To where the placement says.
Result<std::optional<engine::MoveOutcome>> Balance::move(OperationRun& run, std::uint64_t object,
                                                         engine::MoveRequest request) {
  MDFS_TRY_ASSIGN(request.disk, disks_of_units(volume_, object));
  return move_for(run, volume_, object, std::move(request));
}

Status Balance::move_units(OperationRun& run) {
  OperationRecord& record = run.record;
  const std::uint64_t object = record.cursor[0];
  const std::size_t count = std::min(kUnitsAtOnce, units_.size() - next_unit_);
  engine::MoveRequest request;
  std::uint64_t bytes = 0;
  for (std::size_t i = next_unit_; i < next_unit_ + count; ++i) {
    request.units.push_back(units_[i].unit);
    bytes += units_[i].blocks * volume_.store().block_size();
  }
  if (!run.may_write()) {
    record.figures[kMovedBytes] += bytes;
    record.bytes_done += bytes;
    record.items_changed += count;
    next_unit_ += count;
    return {};
  }
  request.most_runs = 0;
  const auto moved = move(run, object, std::move(request));
  if (moved.ok() && !*moved) return {};
  next_unit_ += count;
  if (!moved.ok()) return moved.error().code == Errc::kNotFound ? Status() : Status(moved.error());
  const engine::MoveOutcome& outcome = **moved;
  record.items_changed += outcome.moved;
  record.figures[kMovedBytes] += outcome.moved_bytes;
  record.figures[kNoRoom] += outcome.no_room;
  record.bytes_done += outcome.moved_bytes;
  note_damaged(record, object, outcome);
  uncommitted_bytes_ += outcome.moved_bytes;
  if (uncommitted_bytes_ < kBytesPerCommit) return {};
  uncommitted_bytes_ = 0;
  return volume_.store().commit();
}

Result<bool> Balance::step(OperationRun& run) {
  OperationRecord& record = run.record;
  if (record.parameters[0] == 0) return true;  // every disk has its share
  if (next_unit_ == units_.size() && listing_) {
    if (!can_list(run, record.cursor[0]) || (units_.empty() && !listing_)) ++record.cursor[0];
    return false;
  }
  if (next_unit_ == units_.size()) {
    if (!units_.empty()) ++record.cursor[0];
    units_.clear();
    next_unit_ = 0;
    MDFS_TRY_ASSIGN(const bool more, find_object(run));
    if (more) return false;
    record.bytes_total = record.bytes_done;
    if (run.may_write()) MDFS_TRY(volume_.store().commit());
    return true;
  }
  MDFS_TRY(move_units(run));
  record.bytes_total = std::max(record.bytes_total, record.bytes_done);
  return false;
}

}  // namespace mdfs::maintenance
