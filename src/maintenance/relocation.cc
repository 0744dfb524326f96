// Relocation on request: the walk over objects, and the steps that all operations share.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/relocation.h"

#include <utility>

#include "format/inode.h"
#include "maintenance/objects.h"
#include "volume/records.h"

namespace mdfs::maintenance {

// ---- the walk

void ObjectWalk::begin(Ino object) {
  object_ = object;
  is_within_ = at_end_ = false;
  at_ = {};
}

void ObjectWalk::begin_again() {
  begin(last_);
  is_within_ = true;
}

Result<std::optional<ObjectPart>> ObjectWalk::next() {
  if (at_end_) return std::optional<ObjectPart>();
  ObjectPart part;
  bool has_data = true;
  if (!is_within_) {
    MDFS_TRY_ASSIGN(const auto items, volume_.store().scan({object_, 0, 0}, format::kMaxKey, 1));
    if (items.empty()) return std::optional<ObjectPart>();
    object_ = items.front().key.object;
    at_ = {};
    part.is_first = true;
    has_data = false;
    if (items.front().key.kind == MDFS_KIND_INODE) {  // the first item of its object
      const Result<format::Inode> inode = format::decode_inode(items.front().value);
      if (!inode.ok()) part.listed = inode.error();
      has_data = inode.ok() && inode->is_regular();
    }
  }
  last_ = part.object = object_;
  part.is_last = true;
  if (has_data) part.listed = list(part);
  is_within_ = !part.is_last;
  if (part.is_last) at_end_ = object_++ == UINT64_MAX;
  return std::optional(std::move(part));
}

Status ObjectWalk::list(ObjectPart& part) {
  Result<engine::LayoutRows> found = layout_rows(volume_, part.object, {.from = at_, .most = kRowsAtOnce, .of = of_});
  if (!found.ok()) return found.error().code == Errc::kNotFound ? Status() : Status(found.error());
  part.rows = std::move(found->rows);
  part.is_last = found->at_end;
  at_ = found->next;
  return {};
}

// ---- steps

void Relocation::forget() {
  queue_.clear();
  uncommitted_bytes_ = 0;
  has_left_ = false;
}

Status Relocation::commit() {
  uncommitted_bytes_ = 0;
  has_left_ = false;
  return volume_.store().commit_freed();
}

Status Relocation::note_written(std::uint64_t bytes) {
  uncommitted_bytes_ += bytes;
  has_left_ = has_left_ || bytes > 0;
  if (uncommitted_bytes_ < kBytesPerCommit) return {};
  uncommitted_bytes_ = 0;
  return volume_.store().commit();
}

Result<bool> Relocation::step(OperationRun& run) {
  if (!queue_.empty()) {
    Candidate& candidate = queue_.front();
    MDFS_TRY(candidate.reason == MoveReason::kInStrips ? consolidate(run, candidate) : relocate(run, candidate));
    note_progress(run);
    return false;
  }
  const std::int64_t until_ns = volume_.environment().monotonic_ns() + kFindNs;
  do {
    MDFS_TRY_ASSIGN(const bool more, find(run));
    if (!more) return true;
  } while (queue_.empty() && !run.stopping() && volume_.environment().monotonic_ns() < until_ns);
  note_progress(run);
  return false;
}

// Extents are written whole, also those that are not full, because more bytes may never come.
Status Relocation::consolidate(OperationRun& run, Candidate& candidate) {
  run.yield();
  const Result<std::uint64_t> bytes = volume_.consolidate(candidate.object, kStepBytes, true);
  if (bytes.ok() && *bytes > 0) {
    run.spend(2 * *bytes);
    return note_written(*bytes);
  }
  // Nothing is left, or what is left is being written to, is damaged, or has no room.
  return end(run, bytes.ok() ? Status() : Status(bytes.error()));
}

Status Relocation::relocate(OperationRun& run, Candidate& candidate) {
  engine::MoveOutcome& outcome = candidate.outcome;
  if (!run.may_write()) {
    outcome.moved = candidate.request.extents.size();
    outcome.moved_bytes = candidate.bytes;
    return end(run, {});
  }
  bool stopped = false;
  candidate.request.pace = [&](std::uint64_t bytes) -> Status {
    run.spend(2 * bytes);
    run.yield();
    stopped = run.stopping();
    return stopped ? Status(Error{Errc::kBusy, "told to stop"}) : Status{};
  };
  Result<engine::MoveOutcome> moved = volume_.move_data(candidate.object, candidate.request);
  candidate.request.pace = {};
  if (stopped) return {};  // nothing has moved
  if (!moved.ok()) {
    if (!volume::is_passed_over(moved.error())) return moved.error();
    return end(run, moved.error());
  }
  const std::uint64_t bytes = moved->moved_bytes;
  outcome.no_room.clear();
  outcome += std::move(*moved);
  MDFS_TRY(note_written(bytes));
  if (!outcome.no_room.empty()) {
    candidate.request.extents = outcome.no_room;
    MDFS_TRY_ASSIGN(const bool again, find_elsewhere(run, candidate));
    if (again) return {};
    if (has_left_) return commit();  // and then once more
  }
  return end(run, {});
}

Status Relocation::end(OperationRun& run, const Status& status) {
  Candidate candidate = std::move(queue_.front());
  queue_.pop_front();
  return done(run, std::move(candidate), status);
}

void note_damaged(OperationRecord& record, Ino object, const engine::MoveOutcome& moved) {
  for (const engine::MoveOutcome::Damaged& damaged : moved.damaged)
    record.note_error(
        {object, damaged.number, damaged.place.block, damaged.place.disk,
         static_cast<std::uint16_t>(damaged.error.code == Errc::kCorrupt ? MDFS_ERROR_DATA : MDFS_ERROR_UNREADABLE)});
}

}  // namespace mdfs::maintenance
