// Balancing, step by step.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/log.h"
#include "maintenance/objects.h"

namespace mdfs::maintenance {
namespace {

void note_skipped(OperationRecord& record, Ino object, const Error& error) {
  spdlog::error("balancing: object {}: {}", object, error.message());
  record.note_error({object, 0, 0, 0, MDFS_ERROR_SKIPPED});
}

}  // namespace

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
  // Dirty data count as well, and deleted data count on no disk.
  if (!volume_.store().read_only()) {
    MDFS_TRY(volume_.engine().write_back_all(0));
    MDFS_TRY(volume_.store().commit_freed());
  }
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
  forget();
  walk_.begin(run.record.cursor[0]);
  // Deleted data, and data that moved before a crash, count on no disk.
  if (!volume_.store().read_only()) MDFS_TRY(volume_.store().commit_freed());
  lacking_.clear();
  for (unsigned disk = 0; disk < MDFS_MAX_DISKS; ++disk)
    if (((run.record.parameters[0] >> disk) & 1) != 0) lacking_[disk] = lacking_blocks(disk);
  if (!run.may_write() || run.record.parameters[0] == 0) return {};
  MDFS_TRY(volume_.placements().include_disks(run.record.parameters[0]));
  volume_.placements_changed();
  return {};
}

Result<bool> Balance::find(OperationRun& run) {
  OperationRecord& record = run.record;
  if (record.parameters[0] == 0) return false;  // every disk has its share
  record.cursor[0] = walk_.position();          // nothing before it is queued
  MDFS_TRY_ASSIGN(const std::optional<ObjectPart> part, walk_.next());
  if (!part) {
    record.bytes_total = record.bytes_done;
    if (run.may_write()) MDFS_TRY(volume_.store().commit());
    return false;
  }
  if (part->is_first) ++record.items_done;
  Status looked = part->listed.ok() ? look_at(run, *part) : part->listed;
  if (looked.ok() || looked.error().code == Errc::kNotFound) return true;
  note_skipped(record, part->object, looked.error());
  return true;
}

Status Balance::look_at(OperationRun& run, const ObjectPart& part) {
  const std::uint64_t taking = run.record.parameters[0];
  if (part.rows.empty()) return {};
  const auto with_disks = [&](const auto& placement) { return volume_.placements().with_disks(placement, taking); };
  MDFS_TRY_ASSIGN(const DiskOfExtent disk_of_extent, disks_of_extents(volume_, part.object, with_disks));
  MDFS_TRY_ASSIGN(const DiskOfExtent disk_of_copy, disks_of_copies(volume_, part.object, with_disks));
  std::vector<Candidate> candidates;
  for (std::size_t first = 0, last = 0; first < part.rows.size(); first = last) {
    const geometry::Coord extent = part.rows[first].index;
    const bool is_copy = part.rows[first].is_copy;
    const DiskOfExtent& disk_of = is_copy ? disk_of_copy : disk_of_extent;
    const unsigned disk = disk_of(extent);
    std::uint64_t blocks = 0;
    bool is_there = true;
    for (; last < part.rows.size() && part.rows[last].index == extent && part.rows[last].is_copy == is_copy;
         ++last) {  // the runs of a cell
      blocks += ceil_div(part.rows[last].stored_bytes, volume_.store().block_size());
      is_there = is_there && part.rows[last].disk == disk;
    }
    const auto lacking = lacking_.find(disk);
    if (part.rows[first].in_strip || part.rows[first].is_leaver || is_there || lacking == lacking_.end() ||
        lacking->second < blocks)
      continue;
    lacking->second -= blocks;
    if (candidates.empty() || candidates.back().request.extents.size() == kExtentsAtOnce ||
        candidates.back().request.of_copies != is_copy) {
      Candidate& candidate = candidates.emplace_back();
      candidate.object = part.object;
      candidate.reason = MoveReason::kWrongDisk;
      candidate.request.disk = disk_of;
      candidate.request.of_copies = is_copy;
      candidate.request.most_runs = 0;
    }
    candidates.back().request.extents.push_back(extent);
    candidates.back().bytes += blocks * volume_.store().block_size();
  }
  for (Candidate& candidate : candidates) queue(std::move(candidate));
  return {};
}

Status Balance::done(OperationRun& run, Candidate candidate, const Status& status) {
  OperationRecord& record = run.record;
  const engine::MoveOutcome& outcome = candidate.outcome;
  record.items_changed += outcome.moved;
  record.figures[kMovedBytes] += outcome.moved_bytes;
  record.figures[kNoRoom] += outcome.no_room.size();
  record.bytes_done += outcome.moved_bytes;
  record.bytes_total = std::max(record.bytes_total, record.bytes_done);
  note_damaged(record, candidate.object, outcome);
  if (!status.ok() && status.error().code != Errc::kNotFound) note_skipped(record, candidate.object, status.error());
  return {};
}

}  // namespace mdfs::maintenance
